// SPDX-License-Identifier: Apache-2.0
// sluice run --record: the samples of a running program as a trace.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/cli/sampler.h"
#include "commands/trace/trace.h"

namespace sluice::cli {

class recorder {
 public:
  explicit recorder(double interval_s) : interval_s_(interval_s) {}

  void take(sample const& s);

  /// What was recorded, with its provenance. `command`: what was run.
  trace::trace result(std::vector<std::string> const& command, double start_unix_s) const;

 private:
  using row = std::array<double, trace::op_count>;

  void add_to_facts(sample const& s);

  double interval_s_;
  std::size_t samples_per_row_ = 1;
  std::vector<row> rows_;
  std::uint64_t calls_ = 0, errors_ = 0;
  struct {
    double calls = 0, bytes = 0;
  } read_, write_;
};

}  // namespace sluice::cli
