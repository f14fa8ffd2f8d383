// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/quantity.h"

namespace sluice::trace {

namespace {

constexpr std::size_t course_points = 24;

/// One line of the table, in operations or bytes per second.
struct figures {
  std::string name;
  bool bytes = false;
  double total = 0, mean = 0, p99 = 0, peak = 0, peak_at_s = 0;
  std::vector<double> course;  // the most of each stretch of the trace
};

using choice = std::function<bool(column const&)>;

figures figures_of(trace const& t, std::string name, bool bytes, choice const& of) {
  figures f{std::move(name), bytes, 0, 0, 0, 0, 0, {}};
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < t.columns.size(); ++c)
    if (of(t.columns[c])) places.push_back(c);
  std::vector<double> rate;
  f.course.resize(std::min(course_points, t.counts.size()));
  for (std::size_t i = 0; i < t.counts.size(); ++i) {
    double sum = 0;
    for (auto c : places) sum += t.counts[i][c];
    f.total += sum;
    double const per_s = sum / t.interval_s;
    if (per_s > f.peak) f.peak_at_s = static_cast<double>(i) * t.interval_s;
    f.peak = std::max(f.peak, per_s);
    auto& point = f.course[i * f.course.size() / t.counts.size()];
    point = std::max(point, per_s);
    rate.push_back(per_s);
  }
  f.mean = t.duration_s() > 0 ? f.total / t.duration_s() : 0;
  if (!rate.empty()) {
    auto const at =
        static_cast<std::ptrdiff_t>(std::ceil(0.99 * static_cast<double>(rate.size()))) - 1;
    std::nth_element(rate.begin(), rate.begin() + at, rate.end());
    f.p99 = rate[static_cast<std::size_t>(at)];
  }
  return f;
}

bool is_metadata(column const& c) {
  auto const bit = core::op_bit(op_table[c.op].as);
  return (core::ops_of_selector("metadata") & bit) != 0;
}

/// Rows of the table: the ops of the trace, sums of the resources, jobs.
std::vector<figures> rows_of(trace const& t) {
  std::vector<figures> rows;
  for (unsigned op = 0; op < op_count; ++op) {
    auto const of = [op](column const& c) { return c.op == op; };
    if (std::any_of(t.columns.begin(), t.columns.end(), of))
      rows.push_back(
          figures_of(t, std::string(op_table[op].name), op_table[op].counts_bytes(), of));
  }
  return rows;
}

std::vector<figures> jobs_of(trace const& t) {
  std::vector<figures> rows;
  auto const jobs = t.jobs();
  if (jobs.size() == 1 && jobs[0].empty()) return rows;
  for (auto const& job : jobs)
    rows.push_back(figures_of(t, job, false, [&job](column const& c) {
      return c.job == job && !op_table[c.op].counts_bytes();
    }));
  return rows;
}

std::string short_words(double value, bool bytes) {
  core::unit_kind const unit = bytes ? core::unit_kind::bytes : core::unit_kind::ops;
  return short_number(value, unit) + (bytes ? "B" : "");
}

std::string sparkline(std::vector<double> const& course, double top, spark sparks) {
  static constexpr char const* steps[2][8] = {{"_", ".", ":", "-", "=", "+", "*", "#"},
                                              {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
  auto const& step = steps[sparks == spark::unicode];
  std::string line;
  for (double value : course) {
    int const height = top > 0 ? static_cast<int>(std::ceil(value / top * 8)) : 0;
    line += height <= 0 ? " " : step[std::min(height, 8) - 1];
  }
  return line;
}

void add_row(std::string& text, figures const& f, double all, spark sparks) {
  text += fmt::format(
      "  {:<12.40} {:>9} {:>6} {:>9} {:>9} {:>9}", f.name, short_words(f.total, f.bytes),
      f.bytes || all == 0 ? "" : fmt::format("{:.1f}%", f.total / all * 100),
      short_words(f.mean, f.bytes), short_words(f.p99, f.bytes), short_words(f.peak, f.bytes));
  if (sparks != spark::none) text += "  " + sparkline(f.course, f.peak, sparks);
  text += '\n';
}

std::string time_text(double seconds) {
  auto const s = static_cast<long>(seconds);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  std::string text;
  if (s >= 86400) text += fmt::format("{} d ", s / 86400);
  return text + fmt::format("{}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
}

std::string iso_time(double unix_s) {
  auto const at = static_cast<std::time_t>(unix_s);
  std::tm parts = {};
  char text[40];
  if (gmtime_r(&at, &parts) == nullptr) return "?";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

nlohmann::ordered_json figures_json(figures const& f, char const* what) {
  return {{what, f.name},
          {"unit", f.bytes ? "bytes" : "ops"},
          {"total", f.total},
          {"mean_per_s", f.mean},
          {"p99_per_s", f.p99},
          {"peak_per_s", f.peak},
          {"peak_at_s", f.peak_at_s}};
}

}  // namespace

std::string info_table(trace const& t, std::string const& name, spark sparks) {
  auto const all = figures_of(t, "operations", false,
                              [](column const& c) { return !op_table[c.op].counts_bytes(); });
  std::string text =
      fmt::format("{}: {} in {} interval{} of {:.6g} s, {} job{}", one_line(name),
                  time_text(t.duration_s()), t.counts.size(), t.counts.size() == 1 ? "" : "s",
                  t.interval_s, t.jobs().size(), t.jobs().size() == 1 ? "" : "s");
  if (t.start_unix_s != 0) text += ", from " + iso_time(t.start_unix_s);
  text += '\n';
  for (auto const& [key, value] : t.facts)
    text += one_line(fmt::format("  {}: {}", key, value)) + '\n';
  text += fmt::format("  {:<12} {:>9} {:>6} {:>9} {:>9} {:>9}{}\n", "OP", "TOTAL", "SHARE",
                      "MEAN/s", "P99/s", "PEAK/s", sparks == spark::none ? "" : "  COURSE");
  for (auto const& row : rows_of(t)) add_row(text, row, all.total, sparks);
  add_row(text, figures_of(t, "metadata", false, is_metadata), all.total, sparks);
  auto const jobs = jobs_of(t);
  if (!jobs.empty()) text += "  JOB\n";
  for (auto row : jobs) {
    row.name = one_line(row.name);
    add_row(text, row, all.total, sparks);
  }
  return text;
}

std::string info_json(trace const& t, std::string const& name) {
  using json = nlohmann::ordered_json;
  json facts = json::array(), ops = json::array(), jobs = json::array();
  for (auto const& [key, value] : t.facts) facts.push_back({key, value});
  for (auto const& row : rows_of(t)) ops.push_back(figures_json(row, "op"));
  for (auto const& row : jobs_of(t)) jobs.push_back(figures_json(row, "job"));
  json const start = t.start_unix_s == 0 ? json(nullptr) : json(t.start_unix_s);
  json const out = {
      {"version", 1},
      {"trace", name},
      {"start_unix_s", start},
      {"interval_s", t.interval_s},
      {"intervals", t.counts.size()},
      {"duration_s", t.duration_s()},
      {"facts", facts},
      {"ops", ops},
      {"metadata", figures_json(figures_of(t, "metadata", false, is_metadata), "resource")},
      {"jobs", jobs}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::trace
