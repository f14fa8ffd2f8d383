// SPDX-License-Identifier: Apache-2.0
// What the node tells its history, once a cycle.
#include "control/dashboard.h"
#include "node/clock.h"
#include "node/rows.h"
#include "node/state.h"

namespace sluice::node {

namespace {

/// Served is counted, not sampled: a cycle may end early.
float served_since(stream& s, double passed_s) {
  std::uint64_t const more = s.served_milli - s.told_milli;
  s.told_milli = s.served_milli;
  return passed_s > 0 ? static_cast<float>(tokens(more) / passed_s) : 0;
}

}  // namespace

void state::remember(moment at) {
  if (services.board == nullptr) return;
  control::history& past = services.board->past;
  auto const as_float = [](rate r) { return static_cast<float>(tokens(r)); };
  past.begin(at.boot_ns, static_cast<double>(control::read_clock(CLOCK_REALTIME)) / 1e9);
  for (auto const& j : jobs.all()) {
    auto const* const changed = overrides.find(j->folder);
    std::string const& qos_class = class_in_force(*j, changed);
    for (auto& s : j->streams) {
      supply_slot const& slot = site.supplies()[s.supply];
      share_claim const claim = claim_of(*j, s, site.site(), slot, changed, has_parent());
      bool const is_bounded = s.last.blocked_ppm == 0;
      std::string const supply = slot.of.name();
      control::history_look look = {j->record.name, qos_class, supply, j->record.uid,
                                    s.unit == unit_kind::bytes};
      look.rates.served = served_since(s, past.passed_s());
      look.rates.demand =
          is_bounded ? as_float(s.last.served) : std::numeric_limits<float>::quiet_NaN();
      look.rates.grant = as_float(s.share);
      look.rates.waiting = as_float(s.last.waiting);
      look.rates.blocked = static_cast<float>(s.last.blocked_ppm) / 1e6f;
      if (claim.policy.limit != policies::unbounded) look.limit = tokens(claim.policy.limit);
      past.put(look);
    }
  }
  for (supply_slot const& slot : site.supplies())
    if (slot.of.capacity != 0)
      past.put_supply(slot.of.name(), slot.of.unit == unit_kind::bytes, tokens(slot.of.capacity));
  past.end();
}

}  // namespace sluice::node
