// SPDX-License-Identifier: Apache-2.0
// What is written here, csv_read.cc reads back as the same trace.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>

#include "base/output_file.h"
#include "base/printable.h"
#include "commands/trace/trace.h"

namespace sluice::trace {

namespace {

bool has_jobs(trace const& t) {
  return std::any_of(t.columns.begin(), t.columns.end(),
                     [](column const& c) { return !c.job.empty(); });
}

/// With as many decimals as are needed, at most nine.
std::string seconds_text(double seconds) {
  std::string text = fmt::format("{:.9f}", seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string time_of(trace const& t, std::size_t interval) {
  return seconds_text(static_cast<double>(interval) * t.interval_s);
}

void write_header(trace const& t, std::ostream& to) {
  for (auto const& [key, value] : t.facts) fmt::print(to, "# {}: {}\n", key, one_line(value));
  fmt::print(to, "# units: operations in the interval; read and write: bytes in the interval\n");
  fmt::print(to, "# interval: {}s\n", seconds_text(t.interval_s));
  fmt::print(to, "# intervals: {}\n", t.counts.size());
  if (t.start_unix_s != 0) fmt::print(to, "# start_unix_s: {:.3f}\n", t.start_unix_s);
}

/// Long rows leave zeros out, except where the trace begins and ends.
void write_long(trace const& t, std::ostream& to) {
  bool const jobs = has_jobs(t);
  fmt::print(to, "time_s,op,count{}\n", jobs ? ",job" : "");
  for (std::size_t i = 0; i < t.counts.size(); ++i) {
    std::string const when = time_of(t, i);
    bool const all = i == 0 || i + 1 == t.counts.size();
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      if (t.counts[i][c] == 0 && !all) continue;
      fmt::print(to, "{},{},{}", when, op_table[t.columns[c].op].name, t.counts[i][c]);
      if (jobs) fmt::print(to, ",{}", t.columns[c].job);
      to << '\n';
    }
  }
}

void write_wide(trace const& t, std::ostream& to) {
  bool const jobs = has_jobs(t);
  std::vector<unsigned> ops;
  std::map<std::pair<std::string, unsigned>, std::size_t> place;
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    place[{t.columns[c].job, t.columns[c].op}] = c;
    if (std::find(ops.begin(), ops.end(), t.columns[c].op) == ops.end())
      ops.push_back(t.columns[c].op);
  }
  to << "time_s";
  for (unsigned op : ops) fmt::print(to, ",{}", op_table[op].name);
  to << (jobs ? ",job\n" : "\n");
  std::vector<std::pair<std::string, std::vector<std::ptrdiff_t>>> rows;  // -1: has no such column
  for (auto const& job : t.jobs()) {
    auto& cells = rows.emplace_back(job, std::vector<std::ptrdiff_t>{}).second;
    for (unsigned op : ops) {
      auto const found = place.find({job, op});
      cells.push_back(found == place.end() ? -1 : static_cast<std::ptrdiff_t>(found->second));
    }
  }
  for (std::size_t i = 0; i < t.counts.size(); ++i) {
    std::string const when = time_of(t, i);
    for (auto const& [job, cells] : rows) {
      to << when;
      for (auto const c : cells)
        fmt::print(to, ",{}", c < 0 ? 0.0 : t.counts[i][static_cast<std::size_t>(c)]);
      if (jobs) fmt::print(to, ",{}", job);
      to << '\n';
    }
  }
}

}  // namespace

void write(trace const& t, std::ostream& to, form f) {
  write_header(t, to);
  f == form::wide ? write_wide(t, to) : write_long(t, to);
}

void write(trace const& t, std::string const& path, form f) {
  output_file to(path);
  write(t, to.stream(), f);
  to.commit();
}

}  // namespace sluice::trace
