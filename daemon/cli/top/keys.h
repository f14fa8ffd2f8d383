// SPDX-License-Identifier: Apache-2.0
// What a pressed key does to the screen.
#pragma once

#include <cstddef>

#include "cli/top_view.h"

namespace sluice::cli {

struct top_state {
  top_choice choice;
  double interval_s = 1;
  std::size_t first_row = 0;
  std::size_t page = 1;  // rows seen at once
  bool is_held = false;  // the picture stands still
  bool is_helping = false;
  bool is_typing = false;  // a filter
  bool is_over = false;

  /// After the number of rows or the size of the screen has changed.
  void keep_in_view(std::size_t rows, std::size_t room);
};

void press(top_state& state, int key);

}  // namespace sluice::cli
