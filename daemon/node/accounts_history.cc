// SPDX-License-Identifier: Apache-2.0
// What a node's jobs do, for the history: once a cycle.
#include <limits>
#include <utility>

#include "node/accounts.h"
#include "runtime/dashboard.h"
#include "segment/sums.h"
#include "verbs/views/steered.h"

namespace sluice::node {

namespace {

/// What was counted since it was told last; counted, not sampled: a cycle may end early.
void fill(runtime::history_point& did, stream& s) {
  amounts const now = s.counted.done();
  auto const seconds = [](std::uint64_t ns) { return static_cast<float>(double(ns) / 1e9); };
  did.served = static_cast<double>(now.served - s.told.served);
  did.delayed = static_cast<float>(now.delayed - s.told.delayed);
  did.waited_s = seconds(now.waited_ns - s.told.waited_ns);
  did.blocked_s = seconds(now.blocked_ns - s.told.blocked_ns);
  did.beyond = static_cast<float>(now.beyond - s.told.beyond);
  s.told = now;
}

/// What a job did of each op since it was looked at last. A damaged segment may go back, or say
/// more than a machine can do: that says nothing.
void put_ops(runtime::op_history& past, job& j, std::string const& qos_class) {
  constexpr double most_took_ns = 1e15;  // of all threads, between two looks
  constexpr double late_s = 1;           // what was counted late
  // Of one that was not read nothing is told this time.
  auto now = j.read_ops.empty() ? j.told_ops : std::exchange(j.read_ops, {});
  if (now.empty()) return;
  if (j.told_ops.empty()) j.told_ops = now;
  double const span_s = past.passed_s() + late_s;
  for (unsigned i = 0; i < core::op_count; ++i) {
    if (now[i].calls == 0) continue;  // most jobs make few kinds of calls
    core::op_row const& op = core::op_table[i];
    auto const grown = [&](std::uint64_t segment::op_sums::*field, double most) {
      std::uint64_t const before = j.told_ops[i].*field;
      double const more = now[i].*field > before ? static_cast<double>(now[i].*field - before) : 0;
      return more <= most ? more : 0;
    };
    auto const put = [&](runtime::op_unit unit, double amount) {
      past.put({j.record.name, qos_class, op.name, j.record.uid, unit, amount});
    };
    put(runtime::op_unit::operations,
        grown(&segment::op_sums::calls, possible_in(unit_kind::ops, span_s)));
    if (op.has_bytes)
      put(runtime::op_unit::bytes,
          grown(&segment::op_sums::bytes, possible_in(unit_kind::bytes, span_s)));
    put(runtime::op_unit::seconds, grown(&segment::op_sums::took_ns, most_took_ns) / 1e9);
  }
  j.told_ops = std::move(now);
}

}  // namespace

void accounts::tell_ops(runtime::dashboard& board, moment at, std::span<job* const> gone) {
  runtime::op_history& past = board.ops;
  if (gone.empty() && !past.is_due(at.boot_ns)) return;
  auto const read = [](job& j) { j.read_ops = segment::sum_by_op(j.memory()); };
  if (gone.empty()) loop_.figures.each(jobs_.all(), read);
  for (job* j : gone) loop_.figures.spend_anyhow(j->owner, [&] { read(*j); });
  past.begin(at.boot_ns, static_cast<double>(unix_ns()) / 1e9);
  for (auto const& j : jobs_.all()) put_ops(past, *j, class_of(*j));
  past.end();
}

void accounts::tell(runtime::dashboard* board, steering const& steered, moment at,
                    std::span<job* const> gone) {
  if (board == nullptr) return;
  tell_ops(*board, at, gone);
  runtime::history& past = board->past;
  auto const as_float = [](rate r) { return static_cast<float>(tokens(r)); };
  past.begin(at.boot_ns, static_cast<double>(unix_ns()) / 1e9);
  for (auto const& j : jobs_.all()) {
    auto const* const changed = overrides_.find(j->key);
    std::string const& qos_class = class_in_force(*j, changed);
    for (auto& s : j->streams) {
      supply_slot const& slot = site_.supplies()[s.supply];
      share_claim const claim = claim_of(*j, s, site_.site(), slot, changed, has_parent_);
      figures const now = j->told_of(s);
      bool const is_bounded = now.blocked_ppm == 0;
      std::string const supply = slot.of.name();
      runtime::history_look look = {j->record.name, qos_class, supply, j->record.uid, s.unit};
      fill(look.did, s);
      if (changed != nullptr && changed->pause)
        look.did.paused_s = static_cast<float>(past.passed_s());
      look.did.demand = is_bounded ? as_float(now.served) : std::numeric_limits<float>::quiet_NaN();
      look.did.grant = as_float(s.share);
      look.did.waiting = as_float(now.waiting);
      if (claim.policy.limit != policies::unbounded) look.did.limit = as_float(claim.policy.limit);
      past.put(look);
    }
  }
  for (unsigned i = 0; i < site_.supplies().size(); ++i) {
    policy::supply const& of = site_.supplies()[i].of;
    if (of.capacity == 0) continue;
    auto const view = steered.view(i);
    past.put_supply(of.name(), of.unit, tokens(steered.in_force(i)),
                    view ? verbs::steered_in_words(*view, of.unit) : "");
  }
  past.end();
}

}  // namespace sluice::node
