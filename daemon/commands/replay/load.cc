// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/suggest.h"

namespace sluice::replay {

namespace {

/// A job of the replay and the job of the trace it plays.
struct part_of_trace {
  std::string name;
  std::string source;
};

std::vector<part_of_trace> cast(trace::trace const& t, unsigned wanted) {
  std::vector<std::string> const there = t.jobs();
  auto const n = wanted != 0 ? wanted : static_cast<unsigned>(there.size());
  std::vector<part_of_trace> parts;
  for (unsigned i = 0; i < n; ++i) {
    std::string const& source = there[i % there.size()];
    auto const round = i / there.size() + 1;
    std::string name = source;
    if (source.empty())
      name = fmt::format("job{}", round);
    else if (round > 1)
      name = fmt::format("{}-{}", source, round);
    parts.push_back({name, source});
  }
  return parts;
}

/// A column of the load and the columns of the trace that are summed in it.
struct channel {
  std::vector<std::size_t> from;
  double delay = 0;  // in intervals
};

/// What the trace has at an interval of the looped load, before any delay.
double amount_at(trace::trace const& t, channel const& c, std::ptrdiff_t i, unsigned loops) {
  auto const n = static_cast<std::ptrdiff_t>(t.counts.size());
  if (i < 0 || i >= n * static_cast<std::ptrdiff_t>(loops)) return 0;
  double sum = 0;
  for (std::size_t const from : c.from) sum += t.counts[static_cast<std::size_t>(i % n)][from];
  return sum;
}

/// Columns of the load, without those that are empty in the trace.
std::vector<channel> channels_of(trace::trace const& t, load_settings const& s, double step_s,
                                 std::vector<trace::column>& columns) {
  std::vector<channel> channels;
  unsigned index = 0;
  for (auto const& job : cast(t, s.jobs)) {
    std::map<unsigned, channel> by_op;
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
      auto const is_something = [i](auto const& row) { return row[i] > 0; };
      if (t.columns[i].job == job.source &&
          std::any_of(t.counts.begin(), t.counts.end(), is_something))
        by_op[t.columns[i].op].from.push_back(i);
    }
    for (auto& [op, c] : by_op) {
      c.delay = index * s.stagger_s / step_s;
      columns.push_back({job.name, op});
      channels.push_back(c);
    }
    ++index;
  }
  return channels;
}

/// Intervals of the load: loops, the last job's delay; the last one may be cut later.
double length_of(trace::trace const& t, load_settings const& s, double step_s) {
  auto const jobs = static_cast<double>(s.jobs != 0 ? s.jobs : t.jobs().size());
  double const all =
      static_cast<double>(t.counts.size()) * s.loops + std::ceil((jobs - 1) * s.stagger_s / step_s);
  return s.duration_s > 0 ? std::min(all, s.duration_s / step_s) : all;
}

}  // namespace

trace::trace shape(trace::trace const& t, load_settings const& s) {
  double const step_s = t.interval_s / s.time_scale;
  trace::trace load;
  load.interval_s = step_s;
  load.facts = t.facts;
  std::vector<channel> const channels = channels_of(t, s, step_s, load.columns);
  if (channels.empty()) throw usage_error("the trace asks for nothing: all its counts are 0");
  double const length = length_of(t, s, step_s);
  if (std::ceil(length) * static_cast<double>(channels.size()) > trace::most_cells)
    throw usage_error("too long: fewer --loops or --jobs, or a --duration");
  // Operations in an interval: rates stay when time is compressed, so counts shrink.
  double const factor = s.rate_scale / s.time_scale;
  auto const rows = static_cast<std::size_t>(std::ceil(length));
  load.counts.resize(rows, std::vector<double>(channels.size()));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      double const whole = std::floor(channels[c].delay), rest = channels[c].delay - whole;
      auto const at = static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(whole);
      load.counts[i][c] = factor * ((1 - rest) * amount_at(t, channels[c], at, s.loops) +
                                    rest * amount_at(t, channels[c], at - 1, s.loops));
    }
  }
  return load;
}

trace::trace only_job(trace::trace const& t, std::string const& job) {
  std::vector<std::string> const names = t.jobs();
  if (std::find(names.begin(), names.end(), job) == names.end())
    throw usage_error(
        fmt::format("--only-job {}: no such job; there is {}", job, fmt::join(names, ", ")));
  trace::trace one = t;
  std::erase_if(one.columns, [&](auto const& c) { return c.job != job; });
  for (std::size_t i = 0; i < t.counts.size(); ++i) {
    one.counts[i].clear();
    for (std::size_t c = 0; c < t.columns.size(); ++c)
      if (t.columns[c].job == job) one.counts[i].push_back(t.counts[i][c]);
  }
  return one;
}

}  // namespace sluice::replay
