// SPDX-License-Identifier: Apache-2.0
#include "node/pace.h"

#include <algorithm>

#include "core/durations.h"

namespace sluice::node {

std::int64_t next_step_ns(step_reasons const& r) {
  bool const is_fast = r.has_jobs && is_stirred(r, r.stepped_ns);
  std::int64_t const slow_ns = std::max(r.local_ns, quiet_step_ns);
  std::int64_t look_ns = never_ns;
  if (r.has_jobs || r.is_between) look_ns = r.stepped_ns + (is_fast ? r.local_ns : slow_ns);
  return std::min(
      {look_ns, r.cycle_ns, r.sweep_ns, r.heed_ns, r.clients_ns, r.background_ns, r.feed_ns});
}

int poll_ms(std::int64_t due_ns, std::int64_t now_ns) {
  constexpr std::int64_t longest = 3'600'000;
  if (due_ns == never_ns) return -1;
  if (due_ns <= now_ns) return 0;
  return static_cast<int>(std::min((due_ns - now_ns + ms_ns - 1) / ms_ns, longest));
}

}  // namespace sluice::node
