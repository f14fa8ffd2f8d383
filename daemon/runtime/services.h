// SPDX-License-Identifier: Apache-2.0
// The services that main gives to the loop of a role: log, notifier, metrics, ZeroMQ context, keys
// and more. Made once, owned by main, used by the loop's thread alone. Tests make their own: a
// logger with a sink, a notifier without a socket, a table that nobody serves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/owners.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/metric_table.h"
#include "runtime/notify.h"
#include "runtime/signals.h"

namespace sluice::segment {
class far_memory;
class tidier;
}  // namespace sluice::segment

namespace sluice::wire {
class context;
struct security;
}  // namespace sluice::wire

namespace sluice::runtime {

class dashboard;
class metrics_server;
class fresh_look;
class launcher;
class policy_log;

inline constexpr char version[] = "0.1.0";

struct services {
  logger& log;
  notifier& notify;
  metric_table& metrics;
  int signal_fd = -1;                    // see signals.h: next_order(signal_fd)
  wire::context* zmq = nullptr;          // the only one of the process
  wire::security const* keys = nullptr;  // null: plain. Read again by the role after a reload
  std::uint64_t incarnation = 0;         // larger than that of every earlier start
  std::string capabilities = {};  // kept by this process, for people: `cap_chown,…` or `none`
  metrics_server const* metrics_at = nullptr;  // null: none
  int journal_keeper = -1;     // socket of node/journal_keeper.h; -1: this daemon keeps no log
  dashboard* board = nullptr;  // the loop tells it what happens; null in tests
  launcher* walks = nullptr;   // threads that look at processes; null: those of the loop
  segment::tidier* tidier = nullptr;          // of users' files; null: the loop does it
  segment::far_memory* far_memory = nullptr;  // of users' jobs; null: the loop touches it
  fresh_look* looks = nullptr;                // readers of figures ask the loop; null in tests
  policy_log* policies = nullptr;             // the versions that were in force; null in tests
  owner_lookup owner_of = {};                 // for bounds that hold for one user; none in tests
  /// On SIGHUP: reads configuration (file and flags), policy and keys again. Throws sluice::error
  /// when anything is wrong: all stays as it was. Telling the service manager and the log is the
  /// caller's, who has more to do until it is true.
  std::function<config()> reload = {};
};

}  // namespace sluice::runtime
