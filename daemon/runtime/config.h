// SPDX-License-Identifier: Apache-2.0
// The configuration of one sluiced: from the file, then from flags. Read once, and again on SIGHUP.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

enum class role_kind : std::uint8_t { node, relay, cluster };

/// What the socket of a node shows its users.
enum class view_kind : std::uint8_t { node, cluster };

struct config {
  role_kind role = role_kind::node;
  std::string name;                  // default: the host's name up to the first dot
  std::string run_dir;               // sockets and segments; as `sluice --run-dir`
  std::string state_dir;             // incarnation, overrides, last policy; default run_dir/state
  std::string shared_dir;            // of a cluster and its standby; empty: there is none
  std::vector<std::string> parents;  // tcp://host:port, in order of preference
  std::string listen;                // relay, cluster
  std::string keys;                  // directory; empty only with plain
  bool plain = false;                // loopback without keys
  std::string policy;                // file; cluster, or a node without a parent
  std::int64_t cycle_ns = 100'000'000;
  std::int64_t local_cycle_ns = 10'000'000;
  view_kind view = view_kind::node;
  std::string metrics =
      "127.0.0.1:0";          // host:port of /metrics and /health; empty: none; port 0: chosen
  bool metrics_jobs = false;  // series of single jobs too
  std::string journal;        // directory of journals of durable fsync; node; empty: none is kept
  std::uint64_t journal_mib = 256, journal_total_mib = 4096;  // of a user, of all
  std::int64_t journal_idle_ns = 300'000'000'000;
  std::string log_level = "info";
  std::string user;                   // become this user after start; empty: stay
  std::vector<std::string> warnings;  // of what was read; for people
};

char const* name_of(role_kind role);

}  // namespace sluice::runtime
