// SPDX-License-Identifier: Apache-2.0
// What a pressed key does to the screen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/cli/top_view.h"

namespace sluice::cli {

enum class job_verb : std::uint8_t { none, explain, stat, pause, resume };

struct top_state {
  top_choice choice;
  double interval_s = 1;
  std::size_t first_row = 0;
  std::size_t cursor = 0;
  bool is_moved = false;    // by a key: the row of the cursor is another one
  std::string job, supply;  // of the cursor's row once it was moved: it follows them
  std::size_t page = 1;     // rows seen at once
  bool is_held = false;     // the picture stands still
  bool is_helping = false;
  bool is_typing = false;  // a filter
  bool is_over = false;
  job_verb wanted = job_verb::none;  // for the cursor's job; to be done, or asked for first
  bool is_asking = false;            // whether what is wanted shall be done
  std::string asked;                 // for this job, whatever the cursor's row becomes meanwhile
  bool asks_own = false;             // which runs without a daemon
  std::vector<std::string> told;     // what a verb said, instead of the rows
  std::size_t first_told = 0;

  /// After the rows or the size of the screen have changed.
  void keep_in_view(std::vector<line> const& rows, std::size_t room);
};

void press(top_state& state, int key);

}  // namespace sluice::cli
