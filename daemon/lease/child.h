// SPDX-License-Identifier: Apache-2.0
// The side of the lease protocol that takes: node, or a relay towards its parent. Pure. What stays
// true: it uses its floor always, a grant while its lease runs, its escrow only while lent to
// nobody; never grant and escrow together.
//
// The order of effects matters. make_report() moves lent_until(): curves must hold the new end
// before the report leaves. memory() must be on disk before a report that acknowledges a change
// leaves; a node that cannot write it must start with booted() next time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lease/message.h"
#include "lease/rules.h"
#include "lease/timers.h"

namespace sluice::lease {

/// What survives a restart of the daemon (not a reboot of the machine): written by the node to a
/// file after each change.
struct child_memory {
  std::uint64_t parent = 0;              // name of the one lent to (a hash), 0 nobody, or unknown
  std::uint64_t obeyed = 0;              // name of the one whose versions and values these are
  std::uint64_t parent_incarnation = 0;  // of the one obeyed
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

  child(timers const& t, std::uint64_t incarnation, rules const& obeys = {});

  void set_timers(timers const& t);             // a parent announces its level and cycle
  void set_own(std::span<own const> supplies);  // by index; indices of supplies that stay must stay
  /// Nothing is held of this supply, and no change of it waits to be acknowledged.
  bool is_unused(unsigned supply, time_ns now) const;
  /// The index is another supply's from now on: what was is forgotten. It must be unused.
  void renew(unsigned supply);
  /// After a reboot of the machine, or without a memory: nothing is owned before M has passed.
  void booted(time_ns now);
  /// After a restart of the daemon only. What was lent counts as lent until now + M.
  void remember(child_memory const& m, time_ns now);
  child_memory memory() const;
  /// Another process of our name lends what we own, to whoever says so: until then it is not ours.
  void displaced(time_ns until);

  /// Makes a report to `parent` (its name as a hash, not 0). It lends to one parent at a time, and
  /// only to one that answers with values.
  report make_report(std::uint64_t parent, time_ns now);

  /// True when a value changed, or the first answers came: report again at once.
  bool on_grant(std::uint64_t parent, grant const& g, time_ns now);

  /// The parent reported to last has not answered for S: look for another.
  bool is_silent(time_ns now) const;
  bool is_orphan(time_ns now) const;    // nothing lent: the escrow is ours
  bool is_accepted(time_ns now) const;  // answered with values lately: reports to it lend
  std::uint64_t obeyed() const { return obeyed_; }  // whose grants are held, 0 nobody's
  std::uint64_t lent_to() const { return lent_to_; }
  std::uint64_t parent_life() const { return contact_.incarnation; }  // of the one reported to

  rate usable(unsigned supply, time_ns now) const;         // floor + grant or escrow
  rate held(unsigned supply, time_ns now) const;           // by grant
  rate granted(unsigned supply, time_ns now) const;        // by the newest version alone
  time_ns held_until(unsigned supply, time_ns now) const;  // end of the lease of held()
  time_ns lent_until() const;                              // from then on the escrow is ours

  /// Relay: what is applied may be acknowledged only when the children have given up the rest.
  void hold_acknowledgement(unsigned supply, bool hold);
  bool owes_acknowledgement(unsigned supply) const;  // applied, and not reported yet

 private:
  struct former {  // of a parent obeyed before: it has its own ledger for it
    rate value = 0;
    time_ns until = 0;
  };
  struct part {
    own mine;
    version applied, acknowledged;
    rate value = 0;
    time_ns until = 0;
    bool hold = false;
    former before;
  };
  struct contact {  // the parent reported to
    std::uint64_t name = 0;
    std::uint64_t incarnation = 0;
    time_ns t_parent = 0;
    time_ns since = 0;        // first report, or the present life was heard first
    time_ns met_at = 0;       // newest message of that life
    time_ns heard_at = 0;     // newest answer
    time_ns accepted_at = 0;  // newest answer with values
    time_ns bare_since = 0;   // first of the answers without values that came since
    bool heard = false, accepted = false, bare = false;
  };

  bool may_obey(std::uint64_t parent, time_ns now) const;
  bool is_bare(time_ns now) const;
  bool may_lend(time_ns now) const;
  void obey(std::uint64_t parent);
  std::uint64_t known_life(std::uint64_t parent) const;
  void follow_back(std::uint64_t parent, time_ns now);
  bool apply(part& p, given const& g, time_ns t_child, time_ns now);

  timers time_;
  std::uint64_t incarnation_;
  rules obeys_;
  contact contact_;
  std::uint64_t obeyed_ = 0;             // whose versions `applied` are
  std::uint64_t lent_to_ = 0;            // 0 with a lend that runs: unknown, after a boot
  std::uint64_t least_incarnation_ = 0;  // of obeyed_: remembered
  time_ns lend_until_ = 0;
  time_ns started_ = 0;  // since then a lend of a former life may run; 0: none
  time_ns newest_sent_ = 0;
  std::vector<part> parts_;
};

}  // namespace sluice::lease
