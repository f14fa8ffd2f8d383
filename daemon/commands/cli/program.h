// SPDX-License-Identifier: Apache-2.0
// Tells whether a program will load the stage. It reads the program's file before the start, and
// trusts no number in it: static, setuid, another libc or machine, Go, scripts and their
// interpreters.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct program_facts {
  std::string path;
  std::vector<std::string> through;  // for a script: its interpreters, last is the one that decides
  std::string kind;  // `dynamic`, `static`, `setuid`, `musl`, `go`, `foreign`, `other libc` …
  std::string interpreter;    // PT_INTERP
  bool limited = false;       // calls will be seen
  bool loads_library = true;  // false: LD_PRELOAD would stop it from starting
  std::string why;            // sentence
  std::string advice;         // what to do; empty when limited
};

/// What exec would start for this name, by PATH unless it has a slash. Throws with status 127 or
/// 126.
std::string find_program(std::string const& name);

/// Facts of a file; never throws for a strange file, that is what it reports.
program_facts inspect_program(std::string const& path);

}  // namespace sluice::cli
