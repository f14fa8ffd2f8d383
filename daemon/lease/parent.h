// SPDX-License-Identifier: Apache-2.0
// The side of the lease protocol that gives: cluster, or a relay towards its children. Pure: time
// and messages are arguments. What stays true: the sum of what its children may use of a supply
// never exceeds what it may give (its own grant, or the escrow lent to it and the pool it owns).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lease/message.h"
#include "lease/timers.h"

namespace sluice::lease {

enum class pool_owner : std::uint8_t { single, majority, none };

/// What a parent may give of one supply, besides what its children lend.
struct supply_terms {
  rate pool = 0;                 // E0, owned by no node; 0 for a relay
  std::uint32_t configured = 0;  // nodes of the policy, for the majority
  rate most_lent = 0;            // sum of escrow over all configured nodes; claims above it are cut
};

class parent {
 public:
  struct settings {
    timers time;
    pool_owner owner = pool_owner::single;
    bool relay = false;  // gives from own grants (set_own), lent escrow only while orphaned
  };
  /// What a report did. `freed`: others may now get more, answer those below their target at once.
  struct heard {
    bool believed = false;
    bool freed = false;
    bool restarted = false;  // the child has a new incarnation
  };

  parent(settings const& s, std::uint64_t incarnation, time_ns start);

  /// Terms of all supplies, by index. Indices of supplies that stay must stay.
  void set_terms(std::span<supply_terms const> terms);

  /// Relay: its own grant. `until`: end of the own lease; the children's leases nest in it.
  void set_own(unsigned supply, rate value, time_ns until);

  /// Children are named by the caller with small dense numbers; a new number needs no announcement.
  heard on_report(unsigned child, report const& r, time_ns now);

  /// The answer to the newest report of a child (none: empty). `wanted[s]`: what it should have of
  /// each supply; the answer has at most that. A child not believed gets a welcome.
  std::optional<grant> answer(unsigned child, std::span<rate const> wanted, time_ns now);

  /// The child is gone for good or its slot is reused; its ledger entries stay until they end.
  void forget(unsigned child, time_ns now);

  bool is_live(unsigned child, time_ns now) const;  // believed within the last 0.5 s
  rate current(unsigned child, unsigned supply, time_ns now) const;  // newest value not expired
  rate ledger(unsigned child, unsigned supply,
              time_ns now) const;  // what it must be assumed to use
  rate budget(unsigned supply, time_ns now) const;
  rate ledger_sum(unsigned supply, time_ns now) const;
  bool is_quiet(time_ns now) const;  // restarted less than Q ago

  /// Relay: escrow that children lend it for long enough to be lent on; and by how many nodes.
  rate lent_below(unsigned supply, time_ns now, std::uint32_t& members) const;
};

}  // namespace sluice::lease
