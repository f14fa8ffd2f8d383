// SPDX-License-Identifier: Apache-2.0
// Conditions that must hold before a role runs: directories, one daemon per run and state
// directory, a number larger than that of every earlier start, room for connections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config.h"

namespace sluice::runtime {

/// Makes a directory and those above it, 0755; the last one belongs to `user` (empty: to us) and
/// has `mode` if it was made here. Throws sluice_error.
void make_dir(std::string const& dir, unsigned mode, std::string const& user);

/// One daemon per run directory, held as long as the process lives. Throws sluice_error with the
/// pid of who holds it.
int lock_run_dir(std::string const& run_dir);

/// The same for a state directory: two would write one memory of grants. Where it cannot be locked
/// (a full disk, no locks there) the result is -1 and `trouble` says why.
int lock_state_dir(std::string const& state_dir, std::string& trouble);

/// max(stored + 1, now of CLOCK_REALTIME), and stored. On a full disk the clock alone must do:
/// `trouble` says so.
std::uint64_t next_incarnation(std::string const& state_dir, std::uint64_t realtime_ns,
                               std::string& trouble);

/// Leases and pauses end on CLOCK_BOOTTIME, and processes are known by when they began. Throws
/// where a time namespace shifts that: the next daemon outside of it would be wrong about all of
/// them.
void check_clock();

/// How many there may be at a time.
struct serves {
  std::size_t children = 0;
  std::size_t jobs = 0;
};

/// Raises the soft RLIMIT_NOFILE to the hard one. What a person should know: sentences.
std::vector<std::string> check_machine(config const& c, serves most);

}  // namespace sluice::runtime
