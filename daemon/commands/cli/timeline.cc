// SPDX-License-Identifier: Apache-2.0
// A wait is counted when it ends. Of an interval we know how many ended and how long they were
// together, so one that was longer than the interval is known to reach back: from that, and only as
// well as means go, we say in which intervals something waited.
#include "commands/cli/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "calls.h"
#include "commands/cli/limits.h"
#include "policy/limit.h"
#include "segment/jobs.h"
#include "segment/mapping.h"

namespace sluice::cli {

namespace {

constexpr double ns_per_s = 1e9;

void put(std::vector<double>& to, std::size_t at, double more) {
  if (to.size() <= at) to.resize(at + 1, 0);
  to[at] += more;
}

bool is_nothing(std::vector<double> const& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}

/// Whole numbers without a point: most are, and the file is half as long.
json number(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return static_cast<std::int64_t>(v);
  return std::round(v * 1e6) / 1e6;
}

struct line_head {
  char const* kind;  // op or channel
  std::string name;
};

void put_row(json& rows, std::string const& job, line_head const& of, char const* what,
             std::string_view unit, std::vector<double> values, std::size_t count,
             double scale = 1) {
  if (is_nothing(values)) return;
  values.resize(count, 0);
  json list = json::array();
  for (double v : values) list.push_back(number(v * scale));
  rows.push_back(
      {{"job", job}, {of.kind, of.name}, {"what", what}, {"unit", unit}, {"values", list}});
}

/// Takes `:12` off the end; 0: there is none.
unsigned take_number(std::string& text) {
  auto const at = text.find_last_not_of("0123456789");
  if (at == text.npos || text[at] != ':' || at == 0 || at + 1 == text.size()) return 0;
  auto const number = std::strtoul(text.c_str() + at + 1, nullptr, 10);
  text.resize(at);
  return static_cast<unsigned>(std::min(number, 1'000'000'000ul));
}

/// `site.json:12` or `site.json:12:5` as file and line; line 0: it is something else.
struct origin {
  std::string file;
  unsigned line = 0;
};
origin origin_of(std::string_view text) {
  origin out = {std::string(text)};
  unsigned const last = take_number(out.file);
  unsigned const first = take_number(out.file);
  out.line = first != 0 ? first : last;
  return out;
}

}  // namespace

void timeline::take(sample const& each) {
  std::size_t const at = each.index / per_interval_;
  if (at >= most_) {
    halve();
    return take(each);
  }
  count_ = std::max(count_, at + 1);
  ops_.resize(std::max(ops_.size(), each.op.size()));
  for (std::size_t i = 0; i < each.op.size(); ++i) {
    auto const& sum = each.op[i];
    if (sum.calls == 0 && sum.waited_ns == 0 && sum.took_ns == 0) continue;
    track& t = ops_[i];
    put(t.calls, at, static_cast<double>(sum.calls));
    put(t.errors, at, static_cast<double>(sum.errors));
    put(t.bytes, at, static_cast<double>(sum.bytes));
    put(t.delayed, at, static_cast<double>(sum.delayed));
    put(t.waited_s, at, static_cast<double>(sum.waited_ns) / ns_per_s);
    put(t.took_s, at, static_cast<double>(sum.took_ns) / ns_per_s);
  }
  channels_.resize(std::max(channels_.size(), each.channel.size()));
  for (std::size_t i = 0; i < each.channel.size(); ++i) {
    auto const& sum = each.channel[i];
    auto const unit = static_cast<core::unit_kind>(segment_.rules.channel[i].unit);
    track& t = channels_[i];
    put(t.amount, at, core::counted_tokens(unit, sum.amount));
    put(t.delayed, at, static_cast<double>(sum.delayed));
    put(t.waited_s, at, static_cast<double>(sum.waited_ns) / ns_per_s);
  }
  add_limits(at, static_cast<double>(each.width) * interval_s_);
}

/// The rate at the end of the interval: it changes when somebody changes it.
void timeline::add_limits(std::size_t at, double passed_s) {
  for (unsigned i = 0; i < channels_.size(); ++i) {
    auto const unit = static_cast<core::unit_kind>(segment_.rules.channel[i].unit);
    values& limit = channels_[i].limit;
    if (limit.size() <= at) limit.resize(at + 1, 0);
    limit[at] = policy::per_second(unit, rate_of(segment_, i));
    if (limit[at] == 0) put(channels_[i].paused_s, at, passed_s);
  }
}

void timeline::halve() {
  for (auto* tracks : {&ops_, &channels_})
    for (track& t : *tracks)
      for (auto const field : fields) {
        values& v = t.*field;
        for (std::size_t i = 0; i < v.size(); i += 2) {
          double const second = i + 1 < v.size() ? v[i + 1] : 0;
          v[i / 2] = field == &track::limit ? std::max(v[i], second) : v[i] + second;
        }
        v.resize((v.size() + 1) / 2);
      }
  per_interval_ *= 2;
  count_ = (count_ + 1) / 2;
}

timeline::values timeline::blocked(track const& t) const {
  double const step = interval_s_ * static_cast<double>(per_interval_);
  values out(count_, 0);
  for (std::size_t i = 0; i < std::min(count_, t.waited_s.size()); ++i) {
    if (t.waited_s[i] <= 0) continue;
    double const ended = i < t.delayed.size() ? std::max(1.0, t.delayed[i]) : 1;
    double mean = t.waited_s[i] / ended;
    if (mean <= step) mean = std::min(step, t.waited_s[i]);
    for (std::size_t back = i + 1; back-- > 0 && mean > 0; mean -= step)
      out[back] = std::max(out[back], std::min(step, mean));
  }
  return out;
}

json timeline::op_rows(std::string const& job) const {
  json rows = json::array();
  for (std::size_t i = 0; i < ops_.size() && i < core::op_count; ++i) {
    track const& t = ops_[i];
    line_head const of = {"op", std::string(core::op_table[i].name)};
    put_row(rows, job, of, "done", "ops", t.calls, count_);
    put_row(rows, job, of, "done", "bytes", t.bytes, count_);
    put_row(rows, job, of, "failed", "ops", t.errors, count_);
    put_row(rows, job, of, "delayed", "ops", t.delayed, count_);
    put_row(rows, job, of, "waited", "s", t.waited_s, count_);
    put_row(rows, job, of, "took", "s", t.took_s, count_);
  }
  return rows;
}

json timeline::channel_rows(std::string const& job) const {
  json rows = json::array();
  double const step = interval_s_ * static_cast<double>(per_interval_);
  auto const rules = segment::shown_rules_of(segment_);
  for (unsigned i = 0; i < channels_.size() && i < rules->channel_count; ++i) {
    track const& t = channels_[i];
    core::channel_row const& row = rules->channel[i];
    line_head const of = {"channel", std::string(core::view(*rules, row.name))};
    std::string_view const unit = core::row_of(static_cast<core::unit_kind>(row.unit)).name;
    put_row(rows, job, of, "served", unit, t.amount, count_, 1 / step);
    put_row(rows, job, of, "limit", unit, t.limit, count_);
    put_row(rows, job, of, "delayed", "ops", t.delayed, count_);
    put_row(rows, job, of, "waited", "s", t.waited_s, count_);
    put_row(rows, job, of, "blocked", "s", blocked(t), count_);
    // One that never had another rate is a limit of 0.
    if (row.count_only == 0 && !is_nothing(t.limit))
      put_row(rows, job, of, "paused", "s", t.paused_s, count_);
  }
  return rows;
}

json timeline::result(double start_unix_s) const {
  std::string const job = segment::job_name(segment_);
  json rows = op_rows(job);
  for (json& row : channel_rows(job)) rows.push_back(std::move(row));
  return {{"start_unix_s", start_unix_s},
          {"interval_s", interval_s_ * static_cast<double>(per_interval_)},
          {"rows", std::move(rows)}};
}

json rules_json(foreign<abi::segment> const& s) {
  json rows = json::array();
  auto const rules = segment::shown_rules_of(s);
  for (unsigned i = 0; i < rules->rule_count; ++i) {
    unsigned const channel = rules->rule[i].channel;
    core::channel_row const& of = rules->channel[channel];
    auto const unit = static_cast<core::unit_kind>(of.unit);
    std::string text = describe(*rules, i, rate_of(s, channel));
    json row = {{"channel", core::view(*rules, of.name)},
                {"rate_per_s", policy::per_second(unit, rate_of(s, channel))},
                {"unit", core::row_of(unit).name}};
    if (origin const from = origin_of(core::view(*rules, of.origin)); from.line != 0) {
      row["file"] = from.file;
      row["line"] = from.line;
      text.resize(text.rfind(" ("));
    }
    row["text"] = std::move(text);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string result_text(json result) {
  auto const found = result.find("timeline");
  if (found == result.end()) return dump(result);
  json const time = *found;
  result.erase(found);
  auto const compact = [](json const& v) {
    return v.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::string out = dump(result);
  out.resize(out.rfind('}'));
  out += fmt::format("  ,\"timeline\": {{\"start_unix_s\": {}, \"interval_s\": {}, \"rows\": [",
                     compact(time["start_unix_s"]), compact(time["interval_s"]));
  char const* between = "\n    ";
  for (json const& row : time["rows"]) {
    out += between + compact(row);
    between = ",\n    ";
  }
  return out + "\n  ]}\n}\n";
}

}  // namespace sluice::cli
