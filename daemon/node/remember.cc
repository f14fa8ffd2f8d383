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

/// What a job did of each op since it was looked at last. A damaged segment may go back.
void put_ops(control::op_history& past, job& j, std::string const& qos_class) {
  auto now = segment::sum_by_op(j.memory());
  if (j.told_ops.empty()) j.told_ops = now;
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

void state::remember_ops(moment at) {
  control::op_history& past = services.board->ops;
  if (!past.is_due(at.boot_ns)) return;
  past.begin(at.boot_ns, static_cast<double>(control::read_clock(CLOCK_REALTIME)) / 1e9);
  for (auto const& j : jobs.all()) put_ops(past, *j, class_in_force(*j, overrides.find(j->folder)));
  past.end();
}

void state::remember(moment at) {
  if (services.board == nullptr) return;
  remember_ops(at);
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
