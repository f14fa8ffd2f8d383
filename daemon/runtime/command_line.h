// SPDX-License-Identifier: Apache-2.0
// The command line of sluiced, and the configuration file it names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/settings.h"

namespace sluice::runtime {

struct command_line {
  std::vector<given> flags;
  std::string config_file;  // empty: none
  bool check = false;
  std::optional<int> end;  // --help, --version: said already, end with this
};

/// Throws a usage error.
command_line parse_command_line(int argc, char** argv);

/// Reads the file anew; the flags stay.
config read_config(command_line const& line);

}  // namespace sluice::runtime
