// SPDX-License-Identifier: Apache-2.0
// The privileges that the daemon gives up before it listens to anybody. A node of root keeps two
// capabilities in a thread that the loop asks for the calls that need them (base/rights.h):
//   cap_chown            gives a job's segment to the job's user
//   cap_dac_override     opens it again after a restart (0600, of that user)
// and two in threads that talk to nobody, but look for unmetered processes:
//   cap_dac_read_search  lists /proc/PID/fd of other users
//   cap_sys_ptrace       reads /proc/PID/{environ,exe,io,maps}
// The process that clears away what users' jobs leave (segment/tidier.h) has the first two as well.
// Those that touch the memory of users' jobs (segment/far_memory.h) have none.
// The keeper of its journals (node/journal_keeper.h) is a process of its own with the capabilities
// of sluice-order(8). The daemon of root's journal has the same; those of other users have none.
// The loop, and the threads that read what strangers send (HTTP, ZeroMQ), have none of them.
// Relays, clusters and everybody who is not root keep none. No capability comes back: the bounding
// set goes too, and no_new_privs is set.
#pragma once

#include <functional>
#include <string>

#include "runtime/config.h"

namespace sluice::runtime {

struct kept_capabilities {
  std::string kept;     // `cap_chown,cap_dac_override`, or `none`
  std::string missing;  // those it would have kept, had it got them; empty: none
};

/// For this thread and those it makes: call it before there are others. Throws sluice_error.
kept_capabilities drop_capabilities(role_kind role);

/// The same for the keeper of a log.
kept_capabilities drop_to_journal();

/// The same for the process that tidies files of jobs: cap_chown and cap_dac_override.
void drop_to_tidier();

/// The same for those that touch the memory of users' jobs: none.
void drop_all();

/// Runs `make` in a thread of its own that gives up every capability: the threads that it starts
/// have none either. What it throws is thrown here.
void without_capabilities(std::function<void()> const& make);

/// The same, with what it takes to look at processes of other users. Call it before
/// drop_capabilities().
kept_capabilities as_watcher(std::function<void()> const& make);

/// Becomes the user for good, with the user's groups. Throws sluice_error.
void become(std::string const& user);

}  // namespace sluice::runtime
