// SPDX-License-Identifier: Apache-2.0
// Runs a program as if we were not there: in our place (exec), or as a child whose signals and end
// are ours.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace sluice::cli {

struct ending {
  int code = 0;
  int signal = 0;  // 0: it exited with `code`
};

/// Becomes the program; returns errno when it could not.
int become(std::vector<std::string> const& command, std::vector<std::string> const& environment);

/// What is to be done while the program runs, and just before we stop with it. Returns the
/// monotonic time in ns at which it wants to be called again.
using chore = std::function<std::int64_t()>;

/// Another process is not to be had: the program has not been started.
class no_process : public error {
 public:
  explicit no_process(std::string const& sentence) : error(exit_sluice, sentence) {}
};

/// Runs the program and waits for it. Signals sent to us are passed on, a stop is mirrored, and
/// should we be killed the child dies too. `meanwhile`, if any, is called at its times. Throws with
/// status 126 or 127 when it cannot be executed, and no_process.
ending supervise(std::vector<std::string> const& command,
                 std::vector<std::string> const& environment, chore const& meanwhile = {});

/// Ends this process as the child ended: same exit status, same signal.
[[noreturn]] void end_like(ending const& e);

/// The exit status for an exec that failed with this errno.
int status_of_exec_failure(int why);

}  // namespace sluice::cli
