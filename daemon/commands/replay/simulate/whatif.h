// SPDX-License-Identifier: Apache-2.0
// Shows what a policy would have done to a load. A trace is fed to the allocation algorithm that
// the policy names, with the supplies and shares that the controllers compile from it, in virtual
// time. No I/O is done and no daemon is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/trace/trace.h"

namespace sluice::simulation {

struct options {
  std::string policy_file;
  std::string trace_file;
  std::optional<trace::trace> load;  // in place of the file, whose name is then for people only
  std::string target;  // of the policy, by name or by a path in it; empty: the only one
  std::vector<std::string> classes;  // "job=class", or "class" for all others
  std::string output;
  bool json = false;   // the result instead of the table
  bool quiet = false;  // no table
};

/// Prints a table and writes the result file. Throws sluice::error; returns the exit status.
int run(options const& o);

}  // namespace sluice::simulation
