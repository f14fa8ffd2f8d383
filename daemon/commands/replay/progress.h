// SPDX-License-Identifier: Apache-2.0
// The line on the terminal while a replay goes on.
#pragma once

#include <cstdint>
#include <string>

#include "base/terminal_line.h"

namespace sluice::replay {

struct progress_facts {
  double now_s = 0;     // after the start
  double length_s = 0;  // of the load
  double sent_per_s = 0;
  std::uint64_t sent = 0;
  double lag_s = 0;
};

/// No wider than `columns`.
std::string progress_line(progress_facts const& f, unsigned columns);

/// Shows it, when there is a terminal and nobody asked for quiet.
class progress {
 public:
  explicit progress(bool quiet) : line_(quiet) {}

  bool is_shown() const { return line_.is_shown(); }
  /// A few words instead of figures: what is done before and after.
  void say(std::string const& words) { line_.say(words); }
  void show(double now_s, double length_s, std::uint64_t sent, double lag_s);

 private:
  terminal_line line_;
  double last_s_ = 0;
  std::uint64_t last_sent_ = 0;
  double rate_ = 0;
};

}  // namespace sluice::replay
