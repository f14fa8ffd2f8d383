// SPDX-License-Identifier: Apache-2.0
// The journal's daemon, `sluice-order serve`, as a child process: in a session of its own, so that
// Ctrl-C does not reach it; with a death signal, so that it empties its journal when its starter is
// killed. It gets one end of two pipes and a sentinel, and nothing else that is open here.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace sluice::segment {

struct journal_process {
  pid_t pid = 0;
  descriptor ready;  // a byte comes when it serves; the end of the file when it has ended
  descriptor said;   // its standard error, where that was asked for
};

/// What is kept for the one that is started when this one was killed: see journal/sentinel.h. Made
/// once, given to each. Throws.
struct sentinel_pair {
  sentinel_pair();
  descriptor from, to;
};

/// Where its ready byte goes, and the sentinel, is among the arguments that are added.
/// `keeps_words`: its standard error is ours to read; else it is our own. Throws.
journal_process start_journal(std::string const& program, std::vector<std::string> arguments,
                              sentinel_pair const& sentinel, bool keeps_words);

/// Brings home what a journal of ours holds, which nobody serves, by `sluice-recover`; files that
/// users keep from being written are left aside. Waits for it. Throws what it said.
void recover_journal(std::string const& program, std::string const& file);

}  // namespace sluice::segment
