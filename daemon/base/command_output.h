// SPDX-License-Identifier: Apache-2.0
// The output of another program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

struct command_bounds {
  std::size_t most_bytes;
  std::int64_t longest_ns;   // 0: as long as it takes
  bool with_errors = false;  // standard error as well
};

struct command_output {
  std::string text;
  int status = 0;         // as of waitpid
  int start_error = 0;    // errno, when it could not be started
  bool is_whole = false;  // else a bound was met, and it was ended
};

/// Runs `words` (the first is looked for in $PATH) with no input and no signals held back, and
/// waits for its end.
command_output output_of(std::vector<std::string> const& words, command_bounds const& bounds);

}  // namespace sluice
