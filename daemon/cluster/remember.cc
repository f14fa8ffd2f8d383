// SPDX-License-Identifier: Apache-2.0
// What a controller tells its history: each allocation, but not more often than four times a
// second, for there may be ten thousand jobs.
#include "cluster/controller.h"
#include "control/clock.h"
#include "control/dashboard.h"

namespace sluice::cluster {

namespace {

constexpr std::int64_t spacing_ns = 240'000'000;

float tokens(rate r) { return static_cast<float>(r) / 1000; }

}  // namespace

void controller::remember(std::int64_t now) {
  if (services_.board == nullptr || now - remembered_at_ < spacing_ns) return;
  remembered_at_ = now;
  control::history& past = services_.board->past;
  plan const& p = brain_->policy();
  roster const& r = brain_->who();
  past.begin(now, static_cast<double>(control::read_clock(CLOCK_REALTIME)) / 1e9);
  for (std::uint32_t j = 0; j < r.jobs.size(); ++j) {
    job const& who = r.jobs[j];
    if (who.key == 0 || who.name.empty()) continue;
    for (std::uint32_t s = 0; s < r.width(); ++s) {
      flow const& f = r.at(j, s);
      if (f.streams == 0 || p.supplies[s].capacity == 0) continue;
      control::history_look look = {who.name, p.classes[who.row].name, p.supplies[s].name, who.uid,
                                    p.supplies[s].counts_bytes};
      // Nodes report rates: the time since the last look makes them amounts.
      look.did.served = tokens(f.served) * past.passed_s();
      look.did.demand = f.blocked ? std::numeric_limits<float>::quiet_NaN() : tokens(f.served);
      look.did.grant = tokens(f.granted);
      look.did.waiting = tokens(f.waiting);
      look.did.blocked_s = f.blocked ? static_cast<float>(past.passed_s()) : 0;
      look.did.delayed = look.did.waited_s = std::numeric_limits<float>::quiet_NaN();
      if (f.deal.limit != unbounded) look.limit = static_cast<double>(f.deal.limit) / 1000;
      past.put(look);
    }
  }
  for (supply_row const& row : p.supplies)
    if (row.capacity != 0)
      past.put_supply(row.name, row.counts_bytes, static_cast<double>(row.capacity) / 1000);
  past.end();
}

}  // namespace sluice::cluster
