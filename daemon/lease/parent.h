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
#include "lease/rules.h"
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
    timers time;  // of the edges below: a relay's level is one more than that of its own edge
    pool_owner owner = pool_owner::single;
    bool relay = false;  // gives from own grants (set_own), lent escrow only while orphaned
    rules obeys{};
  };
  /// What a report did. `freed`: others may now get more, answer those below their target at once.
  struct heard {
    bool believed = false;
    bool freed = false;
    bool restarted = false;  // the child has a new incarnation
  };

  parent(settings const& s, std::uint64_t incarnation, time_ns start);

  /// A relay learns its level, cycle and lease from its own parent's welcome.
  void set_timers(timers const& t);
  /// Terms of all supplies, by index. Indices of supplies that stay must stay.
  void set_terms(std::span<supply_terms const> terms);

  /// Nothing of this supply is given, lent, or held by a life that is over: no message that is on
  /// its way can tell of any either.
  bool is_unused(unsigned supply, time_ns now) const;
  /// The index is another supply's from now on: what was is forgotten. It must be unused.
  void renew(unsigned supply);

  /// Relay: its own grant. `until`: end of the own lease; the children's leases nest in it.
  void set_own(unsigned supply, rate value, time_ns until);
  /// Relay: nothing is lent to anybody above, so what the children lend is given from.
  void set_orphan(bool orphan);

  /// How many nodes want some of it through this child, where that is not known by their lends.
  void set_nodes(unsigned child, unsigned supply, std::uint32_t nodes);

  /// Children are named by the caller with small dense numbers; a new number needs no announcement.
  heard on_report(unsigned child, report const& r, time_ns now);

  /// The answer to the newest report of a child (none, or too old to answer: empty). `wanted[s]`:
  /// what it should have of each supply; the answer has at most that. A child not believed gets a
  /// welcome. A report may be answered again while it is younger than A.
  std::optional<grant> answer(unsigned child, std::span<rate const> wanted, time_ns now);

  /// The caller is about to answer several children because what may be given became less. Each is
  /// planned first, so that the first to be answered is not cut for what the others are about to
  /// lose; all planned must then be answered, at the same `now`. False: it would not get values.
  bool plan(unsigned child, std::span<rate const> wanted, time_ns now);

  /// The wire has decided that this is the present life of the child. An incarnation that is older
  /// than the known ones, by the child's clock, is then not late but new.
  void hello(unsigned child, std::uint64_t incarnation, time_ns now);

  /// This life of the child is over. What it may still use stays in the ledger until it ends, and
  /// the next life has so much less: many lives together get no more than one.
  void forget(unsigned child, time_ns now);

  bool is_live(unsigned child, time_ns now) const;                   // believed within live_ns()
  rate current(unsigned child, unsigned supply, time_ns now) const;  // newest value not expired
  rate ledger(unsigned child, unsigned supply,
              time_ns now) const;  // what it must be assumed to use
  rate left_by(unsigned child, unsigned supply,
               time_ns now) const;  // what lives that are over hold
  /// Of `wanted`, what an answer would give if there is room.
  rate meant(unsigned child, unsigned supply, rate wanted, time_ns now) const;
  rate lent_by(unsigned child, unsigned supply, time_ns now) const;  // escrow it still lends
  rate budget(unsigned supply, time_ns now) const;
  rate ledger_sum(unsigned supply, time_ns now) const;
  /// Nobody else gives the pool away: it is ours, or lends of most nodes say so, or there is none.
  bool has_pool(time_ns now) const;
  /// The same, and there is one where it goes by majority: of two that share a policy one at most
  /// rules.
  bool is_ruling(time_ns now) const;
  bool is_quiet(time_ns now) const;  // restarted less than Q ago
  rules const& obeys() const { return set_.obeys; }
  std::uint64_t divisions() const { return divisions_; }  // of claims, each sorts all children

  /// Relay: escrow that children lend it for long enough to be lent on; and by how many nodes.
  rate lent_below(unsigned supply, time_ns now, std::uint32_t& members) const;

 private:
  struct entry {
    version ver;
    rate value = 0;
    time_ns end = 0;
    bool kept = false;    // given from escrow of the children, not from an own grant
    time_ns over_at = 0;  // when a later one took its place
  };
  /// One child's part of one supply. `older` holds what is not acknowledged away: almost always
  /// nothing. `left` is of lives that are over, until all that they were given has ended. From
  /// `led` on it is what the sums hold of this slot.
  struct slot {
    entry newest;
    std::vector<entry> older;
    rate lent = 0;
    time_ns lend_end = 0;
    std::uint32_t members = 0;
    rate left = 0;
    time_ns left_end = 0;
    rate led = 0, cur = 0, lending = 0, gone = 0;
    rate cut = 0;  // of cur: planned to be taken by the answer that is about to be made
    std::uint32_t lenders = 0;
    time_ns slow_until = 0;  // it gave up late, or a life of it ended with something in force
    rate steady = 0;         // wanted in all answers of the last L', or less
    rate rising = 0;         // above it: the least wanted since then
    time_ns rises_at = 0;
    time_ns asked_at = 0;
    rate left_kept = 0;        // of `left`, given from escrow of the children
    time_ns shares_until = 0;  // it wanted some of it, 10 L' before at most
    std::uint32_t shares = 0;  // counted as so many
    bool learnt = false;       // what it had of our former life: once, whatever lives it has
    std::uint32_t nodes = 0;   // below it, see set_nodes()
  };
  struct edge {
    bool known = false, believed = false, answered = false, lends = false;
    std::uint64_t incarnation = 0;
    time_ns t_child = 0;
    time_ns received = 0;
    time_ns believed_at = 0;
    bool ever_believed = false;
    std::vector<slot> supply;
  };
  struct total {
    supply_terms terms;
    rate own = 0;
    time_ns own_until = 0;
    rate led = 0, cur = 0, lent = 0, gone = 0;
    rate cut = 0;
    std::uint32_t members = 0;
    std::uint32_t claimers = 0;  // whose former grants were learnt
    std::uint64_t sharers = 0;   // nodes below those who want some of it, or did lately
    bool doubted = false;        // they claimed more than there is: somebody lies
    std::optional<rate> part;    // of claims, until the next refresh
  };

  void meet(unsigned child);
  slot const* find(unsigned child, unsigned supply) const;
  static rate led_of(slot const& x, time_ns now);
  static rate cur_of(slot const& x, time_ns now);
  static rate left_of(slot const& x, time_ns now);
  static rate kept_of(slot const& x, time_ns now);
  rate meant_of(slot const& x, total const& t, rate wanted, time_ns now) const;
  bool is_late(slot const& x, time_ns now) const;
  void watch(slot& x, rate wanted, time_ns now) const;
  void count(slot& x, total& t, time_ns now);
  std::int64_t look_ns() const;
  bool is_fresh(time_ns now) const;
  void refresh(time_ns now);
  rate lent_to_us(unsigned supply, time_ns now, std::uint32_t& members) const;
  rate budget_of(total const& t, rate lent, std::uint32_t members, time_ns now) const;
  void acknowledge(slot& x, holding const& h);
  void learn(slot& x, total& t, holding const& h, time_ns now);
  void borrow(slot& x, total const& t, holding const& h, time_ns from);
  bool cuts_claims(total const& t, time_ns now) const;
  rate divide_claims(unsigned supply, rate budget, time_ns now) const;
  rate part_of_claims(unsigned supply, rate budget, time_ns now);
  given give(slot& x, unsigned supply, rate wanted, time_ns now);
  std::int64_t lease_for(total const& t, time_ns now) const;
  void append(slot& x, rate value, time_ns end, time_ns now);
  bool holds_nothing(edge const& e, time_ns now) const;

  settings set_;
  std::uint64_t incarnation_;
  time_ns start_;
  std::uint64_t counter_ = 0;
  std::uint64_t divisions_ = 0;
  bool orphan_ = false;
  time_ns refreshed_ = 0;
  time_ns horizon_ = 0;  // a lend that ends before does not count until the next refresh
  bool fresh_ = false;
  std::vector<edge> edges_;
  std::vector<total> totals_;
};

}  // namespace sluice::lease
