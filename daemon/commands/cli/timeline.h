// SPDX-License-Identifier: Apache-2.0
// sluice run --report: the samples of a running program as the timeline of its result file, and the
// rules its channels come from. The format is in ../report/README.md. Bounded: when the largest
// number of intervals is reached, pairs become one and the interval doubles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "commands/cli/report.h"
#include "commands/cli/sampler.h"

namespace sluice::cli {

class timeline {
 public:
  static constexpr std::size_t most_intervals = 3600;  // of a length that somebody asked for
  // Else points begin short and grow with the run: a page always has some hundred of them.
  static constexpr std::int64_t first_interval_ns = 20'000'000;
  static constexpr std::size_t most_points = 400;

  /// `s` is looked at for the rates of its channels; it outlives this.
  timeline(foreign<abi::segment> const& s, double interval_s, std::size_t most = most_intervals)
      : segment_(s), interval_s_(interval_s), most_(most) {}

  void take(sample const& each);

  json result(double start_unix_s) const;

 private:
  using values = std::vector<double>;

  /// Of an op or a channel, one value per interval each.
  struct track {
    values calls, errors, bytes, delayed, waited_s, took_s, amount, limit, paused_s;
  };
  static constexpr values track::*fields[] = {&track::calls,   &track::errors,   &track::bytes,
                                              &track::delayed, &track::waited_s, &track::took_s,
                                              &track::amount,  &track::limit,    &track::paused_s};

  void halve();
  void add_limits(std::size_t at, double passed_s);
  json op_rows(std::string const& job) const;
  json channel_rows(std::string const& job) const;
  values blocked(track const& t) const;

  foreign<abi::segment> const& segment_;
  double interval_s_;
  std::size_t most_;
  std::size_t per_interval_ = 1;  // samples
  std::size_t count_ = 0;         // intervals
  std::vector<track> ops_, channels_;
};

/// Where each channel comes from: `rules` of a result file.
json rules_json(foreign<abi::segment> const& s);

/// The whole result as text: a row of the timeline is one line, all else as dump() has it.
std::string result_text(json result);

}  // namespace sluice::cli
