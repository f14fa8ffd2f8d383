// SPDX-License-Identifier: Apache-2.0
// The process of a log daemon, `sluice-order serve`, as a child: in a session of its own, so that
// Ctrl-C does not reach it; with a death signal, so that it empties its log when whoever started it
// is killed. It gets one end of two pipes and a witness, and nothing else that is open here.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace sluice::segment {

struct log_process {
  pid_t pid = 0;
  descriptor ready;  // a byte comes when it serves; the end of the file when it has ended
  descriptor said;   // its standard error, where that was asked for
};

/// What is kept for the one that is started when this one was killed: see order/witness.h. Made
/// once, given to each. Throws.
struct log_witness {
  log_witness();
  descriptor from, to;
};

/// Where its ready byte goes, and the witness, is among the arguments that are added.
/// `keeps_words`: its standard error is ours to read; else it is our own. Throws.
log_process start_log(std::string const& program, std::vector<std::string> arguments,
                      log_witness const& witness, bool keeps_words);

}  // namespace sluice::segment
