// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::trace {

namespace {

constexpr std::size_t most_skipped = 200;

}  // namespace

std::string job_of_file(std::string_view path) {
  path.remove_prefix(path.find_last_of('/') + 1);
  std::string name(path.substr(0, path.find_last_of('.')));
  if (name.empty()) name = path;
  name.resize(std::min(name.size(), most_name_bytes));
  for (char& c : name)
    if (refuse_name({&c, 1}) != nullptr) c = '_';
  return name;
}

events::events(convert_options const& options, std::string tool)
    : options_(options),
      tool_(std::move(tool)),
      line_(options.interval_s > 0 ? options.interval_s : 1, options.intervals_max),
      job_(options.job) {}

void events::begin(lines const& from) {
  from_ = &from;
  any_ = false;
  std::string_view name = from.name();
  name.remove_prefix(name.find_last_of('/') + 1);
  if (sources_.size() < 300) sources_ += (sources_.empty() ? "" : ", ") + std::string(name);
  if (options_.jobs_by == "file") job_ = job_of_file(from.name());
}

void events::refuse_if(char const* why) const {
  if (why != nullptr) from_->fail(why);
}

void events::arrive(double when_s, double slack_s) {
  if (any_ && when_s < latest_s_ - slack_s && !options_.unordered)
    from_->fail(
        fmt::format("out of order: {:.6f} s before the line above; sort the file, or give "
                    "--unordered",
                    latest_s_ - when_s));
  latest_s_ = any_ ? std::max(latest_s_, when_s) : when_s;
  any_ = true;
}

void events::set_job(std::string_view by, std::string_view value) {
  if (options_.jobs_by != by) return;
  if (char const* why = refuse_name(value))
    from_->fail(fmt::format("the {} {} {} and cannot name a job", by, shown(value), why));
  job_ = value;
}

void events::count(double when_s, unsigned op, double amount) {
  refuse_if(line_.at(when_s, job_, op, amount));
}

void events::transfer(double when_s, std::string_view op, double bytes) {
  count(when_s, *find_op(op), bytes);
  auto& sum = op == "read" ? read_ : write_;
  sum.calls += 1;
  sum.bytes += bytes;
}

void events::spread(double from_s, double to_s, unsigned op, double amount) {
  refuse_if(line_.over(from_s, to_s, job_, op, amount));
}

void events::skip(std::string_view name) {
  if (skipped_.size() < most_skipped && skipped_.find(name) == skipped_.end())
    skipped_.emplace(name);
}

trace events::take(bool is_unix) {
  if (line_.is_empty())
    throw usage_error(fmt::format("{}: no call that a trace counts{}", sources_,
                                  options_.below.empty() ? "" : " below " + options_.below));
  trace t = line_.take(is_unix);
  t.facts.emplace_back(
      "provenance", fmt::format("{}, converted by sluice trace convert from {}", tool_, sources_));
  t.facts.emplace_back("synthetic", "no");
  if (!options_.below.empty()) t.facts.emplace_back("note", "only files below " + options_.below);
  if (!skipped_.empty())
    t.facts.emplace_back("note", fmt::format("not counted: {}", fmt::join(skipped_, " ")));
  if (read_.bytes > 0)
    t.facts.emplace_back("read_size", fmt::format("{:.0f}", read_.bytes / read_.calls));
  if (write_.bytes > 0)
    t.facts.emplace_back("write_size", fmt::format("{:.0f}", write_.bytes / write_.calls));
  return t;
}

}  // namespace sluice::trace
