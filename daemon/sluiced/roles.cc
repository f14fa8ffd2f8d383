// SPDX-License-Identifier: Apache-2.0
// Which function runs which role.
#include <poll.h>

#include <ctime>

#include "cluster/run.h"
#include "sluiced/parts.h"
#if __has_include("node/run.h")
#include "node/run.h"
#endif

namespace sluice::sluiced {

namespace {

[[maybe_unused]] int idle(control::config const&, control::services& s) {
  s.notify.ready();
  s.log.info("idle");
  for (;;) {
    pollfd p = {s.signal_fd, POLLIN, 0};
    poll(&p, 1, 100);
    timespec t = {};
    clock_gettime(CLOCK_MONOTONIC, &t);
    std::int64_t const now_ns = t.tv_sec * 1'000'000'000 + t.tv_nsec;
    s.notify.alive(now_ns);
    s.metrics.add(control::metric::cycles_total);
    s.metrics.publish(now_ns);
    for (auto o = control::next_order(s.signal_fd); o != control::order::none;
         o = control::next_order(s.signal_fd)) {
      if (o == control::order::stop) return 0;
      try {
        s.reload();
      } catch (error const&) {
      }
    }
  }
}

#if __has_include("node/run.h")
constexpr run_function node_role = node::run;
#else
constexpr run_function node_role = idle;
#endif
constexpr run_function cluster_role = cluster::run;

}  // namespace

run_function function_of(control::role_kind role) {
  return role == control::role_kind::node ? node_role : cluster_role;
}

}  // namespace sluice::sluiced
