// SPDX-License-Identifier: Apache-2.0
// When the loop of a node takes its next step. Pure, time is an argument. Programs beside us pay
// for each wake-up, so each has a reason: without one the loop sleeps until a message or signal
// comes.
//
// A request that begins to wait cannot wake us: its stage knows no descriptor, and a daemon that
// slept on words which users own could be kept awake by them. So jobs are looked at eight times
// a second, and at the local cycle from the first sign that somebody waits.
#pragma once

#include <cstdint>
#include <limits>

namespace sluice::node {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t quiet_step_ns = 120'000'000;    // with jobs that have what they want
inline constexpr std::int64_t quiet_tell_ns = 1'000'000'000;  // metrics and history have seconds
/// For so long a sign keeps the steps fast: a program that was announced has made its first calls.
inline constexpr std::int64_t stir_ns = 1'000'000'000;

struct step_reasons {
  std::int64_t stepped_ns = 0;         // the last step
  std::int64_t local_ns = 10'000'000;  // the local cycle
  std::int64_t stirred_ns = -stir_ns;  // last sign: somebody waits, a job came or went, …
  bool has_jobs = false;               // or walks through /proc for them
  bool is_between = false;             // clients are not let in yet, or the journal goes home
  // When each is due; never_ns: there is no such thing.
  std::int64_t cycle_ns = never_ns;       // a report to the parent, whose lease runs
  std::int64_t sweep_ns = never_ns;       // somebody left something in RUN/jobs
  std::int64_t heed_ns = never_ns;        // the scheduler has changed its announcements
  std::int64_t clients_ns = never_ns;     // a client says nothing for too long
  std::int64_t background_ns = never_ns;  // limits of background work are set anew
  std::int64_t feed_ns = never_ns;        // the watchdog of the service manager
};

/// Fast steps: a sign was seen not long ago.
constexpr bool is_stirred(step_reasons const& r, std::int64_t now_ns) {
  return now_ns - r.stirred_ns < stir_ns;
}

/// Does the cycle end that began at `begun_ns`, so that figures are taken and the node is divided
/// anew? `is_calm`: all have what they want, and nobody asks, so it need not be soon.
constexpr bool is_cycle_over(std::int64_t begun_ns, std::int64_t due_ns, bool is_calm,
                             std::int64_t now_ns) {
  return now_ns >= due_ns && (!is_calm || now_ns - begun_ns >= quiet_tell_ns);
}

/// never_ns: when somebody speaks.
std::int64_t next_step_ns(step_reasons const& r);

/// For poll(): never early, -1 for never.
int poll_ms(std::int64_t due_ns, std::int64_t now_ns);

}  // namespace sluice::node
