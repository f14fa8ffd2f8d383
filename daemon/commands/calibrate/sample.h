// SPDX-License-Identifier: Apache-2.0
// The result of one round of a step, as a line of the state file and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::calibrate {

struct rate_seen {
  double per_s = 0;
  double p50_us = 0, p99_us = 0;  // of one request
};

struct sample {
  std::string step;  // its id
  unsigned round = 0;
  unsigned threads = 0;           // of all groups
  std::vector<rate_seen> groups;  // as many as the step has kinds of work
  bool is_thin = false;           // a thread ended too few requests to tell its rate
  std::string missing;            // not empty: the file system cannot do it, in words
};

std::string sample_line(sample const& s);
/// Nothing when the line is damaged.
std::optional<sample> parse_sample(std::string_view line);

/// The sample of a step and round; null when there is none.
sample const* find_sample(std::vector<sample> const& all, std::string_view step, unsigned round);

}  // namespace sluice::calibrate
