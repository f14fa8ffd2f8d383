// SPDX-License-Identifier: Apache-2.0
// What the node tells its history, once a cycle.
#include "control/dashboard.h"
#include "node/clock.h"
#include "node/rows.h"
#include "node/state.h"

namespace sluice::node {

namespace {

/// What was counted since it was told last; counted, not sampled: a cycle may end early.
void tell(stream& s, control::history_point& did) {
  amounts const now = s.counted.done();
  auto const seconds = [](std::uint64_t ns) { return static_cast<float>(double(ns) / 1e9); };
  did.served = static_cast<double>(now.served - s.told.served);
  did.delayed = static_cast<float>(now.delayed - s.told.delayed);
  did.waited_s = seconds(now.waited_ns - s.told.waited_ns);
  did.blocked_s = seconds(now.blocked_ns - s.told.blocked_ns);
  s.told = now;
}

/// What a job did of each op since it was looked at last. A damaged segment may go back.
void put_ops(control::op_history& past, job& j, std::string const& qos_class) {
  auto now = segment::sum_by_op(j.memory());
  j.told_ops.resize(now.size());
  for (unsigned i = 0; i < core::op_count; ++i) {
    core::op_row const& op = core::op_table[i];
    auto const grown = [&](std::uint64_t segment::op_sums::*field) {
      std::uint64_t const before = j.told_ops[i].*field;
      return now[i].*field > before ? static_cast<double>(now[i].*field - before) : 0;
    };
    past.put(
        {j.record.name, qos_class, op.name, j.record.uid, false, grown(&segment::op_sums::calls)});
    if (op.has_bytes)
      past.put(
          {j.record.name, qos_class, op.name, j.record.uid, true, grown(&segment::op_sums::bytes)});
  }
  j.told_ops = std::move(now);
}

}  // namespace

void state::remember_ops(moment at, bool last) {
  control::op_history& past = services.board->ops;
  if (!last && !past.is_due(at.boot_ns)) return;
  past.begin(at.boot_ns, static_cast<double>(control::read_clock(CLOCK_REALTIME)) / 1e9);
  for (auto const& j : jobs.all()) put_ops(past, *j, class_in_force(*j, overrides.find(j->folder)));
  past.end();
}

void state::remember(moment at, bool last) {
  if (services.board == nullptr) return;
  remember_ops(at, last);
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
      tell(s, look.did);
      look.did.demand =
          is_bounded ? as_float(s.last.served) : std::numeric_limits<float>::quiet_NaN();
      look.did.grant = as_float(s.share);
      look.did.waiting = as_float(s.last.waiting);
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
