// SPDX-License-Identifier: Apache-2.0
// The decisions of a controller, cluster or relay: reports in, grants out. Pure: time is an
// argument, messages leave through `outbox`, nothing blocks, so hours of control run in a
// simulator.
//
// Reports are taken in as they come; settle() then allocates when a cycle is over, or at once (20
// ms apart) when a demand turned, and answers. A decrease is pushed without waiting for the next
// report, and what an acknowledgement frees is handed on in the same settle(): that is what makes
// the safety of the ledger cheap. What stays true: the ledger (lease::parent) bounds every child's
// total; a job's limit is raised on one child only while the sum over all stays within it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/allotment.h"
#include "cluster/policy_table.h"
#include "cluster/roster.h"
#include "lease/parent.h"
#include "policies/drift.h"
#include "policies/steer.h"
#include "wire/message.h"
#include "wire/supply_list.h"

namespace sluice::cluster {

class outbox {
 public:
  virtual ~outbox() = default;
  /// False: the child is gone or its queue is full. Whatever it was, the next report mends it.
  virtual bool send(std::uint32_t child, wire::message const& m) = 0;
};

/// Who says hello, as the wire knows it: present, whatever lives of that name there were.
struct caller {
  std::string const& name;
  std::uint64_t incarnation;
};

/// Something a person should know; the text is constant per kind, `about` names who or what.
struct notice {
  enum kind_t : std::uint8_t { overbooked, fits_again, child_came, child_silent, child_back } kind;
  std::string about;
  rate reserved = 0, capacity = 0;
};

class arbiter {
 public:
  struct settings {
    wire::role who = wire::role::cluster;
    std::string name;
    lease::timers time;
    std::int64_t spacing_ns = 20'000'000;  // of allocations between cycles
  };

  arbiter(settings const& s, policy_table p, std::uint64_t incarnation, time_ns start);

  void hello(std::uint32_t child, wire::hello const& m, caller const& from, time_ns now,
             outbox& out);
  void report(std::uint32_t child, wire::report const& m, time_ns now);
  void jobs(std::uint32_t child, wire::job_list const& m, time_ns now);
  void bye(std::uint32_t child, time_ns now);

  /// Allocates when due, answers, hands on. True when it allocated.
  bool settle(time_ns now, outbox& out);
  /// When settle() next has work without a message.
  time_ns due() const;

  void set_policy(policy_table p, time_ns now);
  /// Supplies by the last change of policy: these took the rows of others.
  std::vector<std::uint32_t> const& renewed() const { return renewed_; }
  /// How many rows there would be with this policy: more than its supplies while earlier ones are
  /// still used.
  std::size_t rows_with(policy_table p, time_ns now) const;
  void set_overrides(verbs::override_book const* o);
  void set_timers(lease::timers const& t);  // a relay hears them from its parent
  void set_spacing(std::int64_t ns) { set_.spacing_ns = ns; }
  void allocate_soon() { urgent_ = true; }

  /// Relay: whether the amounts of the parent rule, or, orphaned, the algorithm of the policy. Then
  /// limits of jobs are held by nobody for all: each branch keeps to its part, by nodes.
  void obey(bool amounts, std::uint32_t members, std::uint32_t configured);
  /// Relay: what the parent means each job to have; jobs not named get nothing. A window is over
  /// when no child holds more of a job than some message since its opening allows.
  void set_amounts(wire::grant const& g, bool opens_window);
  void open_window();
  bool amounts_settled(time_ns now) const;

  /// Relay: all jobs known now were named to the parent.
  void announced();

  lease::parent& ledger() { return parent_; }
  lease::parent const& ledger() const { return parent_; }
  roster const& who() const { return roster_; }
  policy_table const& policy() const { return roster_.policy(); }
  allotment const& last() const { return allotment_; }
  settings const& set() const { return set_; }
  bool is_obeying() const { return obeys_; }
  std::uint64_t cycle() const { return cycle_; }
  /// Null: its capacity is written, or this is a relay and the cluster steers.
  policies::steer const* steered(std::uint32_t supply) const;
  /// Null: nothing was measured, or the cluster looks.
  policies::drift const* drifted(std::uint32_t supply) const;
  /// What is divided of a supply, with the floors of the nodes.
  rate in_force(std::uint32_t supply) const;
  /// Relay: how fast calls below were since this was asked last.
  policies::call_speeds take_speeds(std::uint32_t supply);
  bool freed() const { return freed_; }  // since the last settle()
  bool edge() const { return urgent_; }
  std::vector<notice> take_notices();

 private:
  void allocate(time_ns now);
  void count_nodes(std::uint32_t number);
  void take_speeds(child const& c, wire::report const& m);
  void steer_supplies(time_ns now);
  bool must_shrink(time_ns now) const;
  void push(time_ns now, outbox& out);
  void answer_all(time_ns now, outbox& out);
  void hand_on(time_ns now, outbox& out);
  bool answer(std::uint32_t c, time_ns now, outbox& out);
  std::vector<std::uint32_t> unused(time_ns now) const;
  void list_supplies(child const& c);
  bool write_streams(child& c, wire::grant& g);
  void mark_hungry(std::uint32_t c, time_ns now);
  rate stream_value(child const& c, stream const& s, rate value) const;
  bool is_off_target(std::uint32_t c, time_ns now) const;
  rate target(std::uint32_t c, std::uint32_t supply, time_ns now) const;
  void send_welcome(std::uint32_t c, outbox& out);
  void send_policy(std::uint32_t c, time_ns now, outbox& out);
  void note_life(child& c, bool live, time_ns now);
  time_ns forgot_until() const;
  lease::report const& as_ours(child const& c, lease::report const& r);
  struct own_part {
    rate escrow = 0;
    std::uint32_t members = 0;
  };
  own_part own_part_of(child const& c, std::uint32_t supply) const;
  bool lends_its_own(child const& c, lease::holding const& h, std::uint32_t supply) const;

  settings set_;
  std::uint64_t incarnation_;
  roster roster_;
  lease::parent parent_;
  allotment allotment_;
  std::unique_ptr<policies::allocator> algorithm_;
  std::vector<policies::steer> steers_;  // by supply, as the next two
  std::vector<policies::drift> drifts_;
  std::vector<policies::call_speeds> speeds_;  // since those looked, or the parent heard
  bool obeys_ = false;
  limit_part part_;  // of the limits of jobs, while alone
  bool urgent_ = true;
  bool freed_ = false;
  bool lacks_pool_ = false;  // for a while already: children that know others look around
  time_ns had_pool_at_;
  bool exact_ = false;  // targets are not rounded to what a child has
  std::uint64_t cycle_ = 0;
  time_ns allocated_at_ = 0;
  time_ns next_cycle_ = 0;
  std::vector<std::uint32_t> unanswered_;
  std::vector<std::uint32_t> hungry_;  // live ones that have less than their target
  std::vector<std::uint32_t> asking_;  // scratch of push() and hand_on()
  std::vector<rate> capacity_;
  std::vector<rate> wanted_;
  std::vector<bool> overbooked_;
  std::vector<notice> notices_;
  std::vector<std::uint32_t> keys_;  // of all supplies
  std::vector<std::uint32_t> renewed_;
  wire::supply_list listed_;  // scratch of answer(): as the grant lists them
  lease::report mapped_;
  time_ns start_;
  wire::message grant_ = wire::grant{};  // reused, so that its arrays stay
};

}  // namespace sluice::cluster
