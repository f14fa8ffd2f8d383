// SPDX-License-Identifier: Apache-2.0
// A relay is a child towards its parent and a parent towards its children. Three rules join the
// two: it gives from its own grant and for no longer than its own lease; it acknowledges a decrease
// only when the ledgers below fit; it lends only what its children lend for longer. Without a
// parent it is the controller of its subtree, with the escrow of its children.
#pragma once

#include "lease/child.h"
#include "lease/parent.h"

namespace sluice::lease {

/// Before answering children, and after a grant from above.
void relay_serve(child const& up, parent& down, unsigned supplies, time_ns now);

/// Right before up.make_report().
void relay_lend(child& up, parent const& down, unsigned supplies, time_ns now);

/// True when a decrease applied before fits by now: report up at once.
bool relay_owes_ack(child const& up, parent const& down, unsigned supplies, time_ns now);

}  // namespace sluice::lease
