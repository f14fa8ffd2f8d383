// SPDX-License-Identifier: Apache-2.0
// The load itself: threads in several processes, each with one kind of request under way, as the
// programs have that sluice meters. Counters lie in memory that all share; the parent looks at them
// at the ends of a window. fio's engines are not used here: README.md says why.
// What stays true: when load() returns or throws, no thread and no process of it is left; when the
// parent is killed, its processes are too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/calibrate/ground.h"
#include "commands/calibrate/plan.h"
#include "commands/calibrate/sample.h"

namespace sluice::calibrate {

/// So many threads of one kind of request.
struct thread_group {
  work what;
  unsigned threads = 1;
  double most_per_s = 0;  // held to this together; 0: as fast as they can
};

struct load_seen {
  std::vector<rate_seen> groups;
  std::int64_t io_ns = 0;  // how long there was a load
  bool is_thin = false;    // a thread ended too few requests in the window
  std::string missing;     // not empty: the file system cannot do it, so nothing was measured
};

/// Throws an error that names the operation when one fails, and `interrupted` when `is_asked` says
/// so.
struct interrupted {};
load_seen run_load(ground const& where, std::vector<thread_group> const& groups, unsigned processes,
                   timing const& t, std::int64_t window_ns, bool (*is_asked)());

}  // namespace sluice::calibrate
