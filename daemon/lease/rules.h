// SPDX-License-Identifier: Apache-2.0
// Each rule that keeps the sum below the capacity has a name here. All are on wherever sluice runs;
// the simulator (test/sim) turns one off at a time and must then see the sum broken.
#pragma once

namespace sluice::lease {

struct rules {
  // the parent
  bool acknowledged_first = true;  // what was given up is given on only when acknowledged or ended
  bool counts_lends = true;        // escrow counts only while it is lent for longer than a grant
  bool lend_from_echo = true;      // a lend is counted from the echo, not from receipt
  bool waits_quiet = true;         // after a restart nothing is raised for Q
  bool believes_own_echo = true;   // only reports sent after a message of this incarnation count
  bool drift_margin = true;        // the ledger's lease is longer than the child's
  bool judged_by_current = true;   // an increase is one over the newest value, not over the ledger
  bool needs_majority = true;      // the pool needs lends of more than half of the nodes
  // the child
  bool lease_from_report =
      true;                      // a lease is counted from the report, not from the grant's arrival
  bool keeps_order = true;       // a version is never followed by an older one
  bool lends_to_one = true;      // nothing is lent to a second parent before the first lend ended
  bool waits_after_boot = true;  // a child without memory does not use its escrow for M
  bool remembers = true;         // a restarted child uses no more than it has acknowledged
  bool escrow_stays_lent = true;  // escrow is not used before the lend has ended
  // the relay
  bool leases_nest = true;        // leases of its children end with its own
  bool acknowledges_late = true;  // a decrease is acknowledged when the ledger below fits it
  bool quiet_holds_back = true;   // a restarted relay acknowledges nothing during Q
  bool lends_nest = true;         // it lends what its children lend for longer
  bool lends_unused = true;       // it lends no escrow that it gave out while orphaned
};

}  // namespace sluice::lease
