// SPDX-License-Identifier: Apache-2.0
#include "lease/relay.h"

namespace sluice::lease {
namespace {

// During Q the ledger does not know what a former incarnation gave.
bool fits(child const& up, parent const& down, unsigned supply, time_ns now) {
  rules const& obeys = down.obeys();
  if (obeys.quiet_holds_back && down.is_quiet(now)) return false;
  return !obeys.acknowledges_late || down.ledger_sum(supply, now) <= up.granted(supply, now);
}

}  // namespace

void relay_serve(child const& up, parent& down, unsigned supplies, time_ns now) {
  for (unsigned s = 0; s < supplies; ++s) down.set_own(s, up.held(s, now), up.held_until(s, now));
  // A parent that answers gets the escrow: what was given from it is called back first.
  down.set_orphan(up.is_orphan(now) && !up.is_accepted(now));
}

void relay_lend(child& up, parent const& down, unsigned supplies, time_ns now) {
  std::vector<child::own> owned(supplies);
  for (unsigned s = 0; s < supplies; ++s) {
    owned[s].escrow = down.lent_below(s, now, owned[s].members);
  }
  up.set_own(owned);
  for (unsigned s = 0; s < supplies; ++s) up.hold_acknowledgement(s, !fits(up, down, s, now));
}

bool relay_owes_ack(child const& up, parent const& down, unsigned supplies, time_ns now) {
  for (unsigned s = 0; s < supplies; ++s) {
    if (up.owes_acknowledgement(s) && fits(up, down, s, now)) return true;
  }
  return false;
}

}  // namespace sluice::lease
