// SPDX-License-Identifier: Apache-2.0
// The side of the lease protocol that takes: node, or a relay towards its parent. Pure. What stays
// true: it uses its floor always, a grant while its lease runs, its escrow only while lent to
// nobody; never grant and escrow together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lease/message.h"
#include "lease/timers.h"

namespace sluice::lease {

/// What survives a restart of the daemon (not a reboot of the machine): written by the node to a
/// file after each change.
struct child_memory {
  std::uint64_t parent = 0;  // name of the one lent to (a hash), 0 nobody
  std::uint64_t parent_incarnation = 0;
  time_ns lend_until = 0;
  struct entry {
    version applied;
    rate value = 0;
    time_ns until = 0;
  };
  std::vector<entry> supply;
};

class child {
 public:
  struct own {
    rate floor = 0;
    rate escrow = 0;
    std::uint32_t members = 1;
  };  // f_n, e_n

  child(timers const& t, std::uint64_t incarnation);

  void set_timers(timers const& t);             // a parent announces its level and cycle
  void set_own(std::span<own const> supplies);  // by index; indices of supplies that stay must stay
  /// After a reboot of the machine: nothing is owned before M has passed.
  void booted(time_ns now);
  /// After a restart of the daemon only.
  void remember(child_memory const& m);
  child_memory memory() const;

  /// Makes a report to `parent` (its name as a hash). It lends unless the parent was silent for S,
  /// or the escrow is lent to another parent.
  report make_report(std::uint64_t parent, time_ns now);

  /// True when a value changed: report again at once.
  bool on_grant(std::uint64_t parent, grant const& g, time_ns now);

  /// No longer lends to anyone; the lend runs out by itself. Used to look for another parent.
  bool is_silent(time_ns now) const;  // the parent lent to has been silent for S
  bool is_orphan(time_ns now) const;  // nothing lent: the escrow is ours

  rate usable(unsigned supply, time_ns now) const;  // floor + grant or escrow
  rate held(unsigned supply, time_ns now) const;    // by grant
  time_ns held_until(unsigned supply) const;        // end of the lease
  time_ns lent_until() const;                       // from then on the escrow is ours

  /// Relay: what is applied may be acknowledged only when the children have given up the rest.
  void hold_acknowledgement(unsigned supply, bool hold);
  void keep_to(unsigned supply, rate value);  // give_up
};

}  // namespace sluice::lease
