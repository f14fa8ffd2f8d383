// SPDX-License-Identifier: Apache-2.0
// What is done to the files of a job that belong to its user: they are cut back when he has let
// them grow, and cleared away when the job is over.
// Each of these calls takes the lock of a file, which its user can hold for as long as he likes:
// write() holds it while it reads memory, and memory can be a file of a FUSE of his that never
// answers. Nothing ends such a wait, not even SIGKILL. So a process of its own does this
// (tidier.h), and never the loop of a daemon.
#pragma once

#include <string>

#include "segment/cut_back.h"

namespace sluice::segment {

struct tidy_task {
  bool is_over = false;     // the job: nobody is to have its files any more
  bool has_let_go = false;  // and the journal's daemon has had the time to let go of its area
  made_sizes sizes;
};

struct tidied {
  bool had_grown = false;  // and is as it was made again
  bool is_leased = false;  // one has grown, and a lease of its owner keeps us from it
  bool are_ours = false;   // of a job that is over: who has them not open cannot open them
  bool is_gone = false;    // with its folder
};

tidied tidy(std::string const& dir, tidy_task const& task);

}  // namespace sluice::segment
