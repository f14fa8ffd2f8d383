// SPDX-License-Identifier: Apache-2.0
// Real programs below the recorder: run under `sluice run --order durable`, with the daemon that
// comes with it, on a real file system; each acknowledged transaction is a mark. After each power
// cut and recovery the program's own check has to pass, and everything acknowledged has to be
// there. What a program does and how it is asked is in programs.py.
#pragma once

#include <cstdint>
#include <string>

#include "journal/service.h"
#include "mounts.h"

namespace sluice::crash {

/// Which disk refuses something, once in a run.
enum class fault { none, home, log, recovery };

struct trial {
  char const* name;
  char const* script;  // of programs.py, with options
  fault what = fault::none;
  bool must_fail = false;
  bool recovers = true;
  std::uint64_t home_bytes = 0;                  // 0: what the file system wants
  journal::service_rules const* keep = nullptr;  // of a daemon with other rules, most are broken
  bool has_cache = true;                         // the disk; without one nothing written is lost
  unsigned homes = 1;                            // file systems of one log
  bool has_users = false;                        // two of a node, with a journal each
  bool is_damaged = false;                       // the first of these, before it is recovered
  static constexpr unsigned cluster = 0;         // two to four nodes, with a disk each

  bool is_cluster() const { return homes == cluster; }
  /// Its daemon lets go of all files, and holds them again, all the time.
  bool is_resting() const { return keep != nullptr && keep->rests_after_ns != 0; }
};

/// Null: there is none of that name.
trial const* find_trial(char const* name);
std::string trial_names();

/// `dir`: as for mounts. Prints what was found; 77: the program is not installed.
int run_trial(trial const& t, fs_kind const& fs, std::string const& dir, std::string const& bin,
              unsigned states, std::uint64_t seed);

/// power_cut broken TRIAL serve ...: sluice-order, with the rules of that trial. Each time that it
/// has let go of all files, the file RESTS gets a byte.
int serve_broken(int argc, char** argv);

}  // namespace sluice::crash
