// SPDX-License-Identifier: Apache-2.0
// What must hold at every moment. The sum is the promise; the others see a broken rule before the
// sum does: a ledger that misses a grant, escrow counted on that its owner uses, an increase beyond
// the budget.
#include <algorithm>
#include <cstdio>

#include "lease_world.h"

namespace sluice::sim {

using kind = process::kind;

void world::note(char const* what, unsigned a, unsigned b, std::int64_t value) {
  traces_[traced_++ % traces_.size()] = {now_, what, a, b, value};
}

std::vector<std::string> world::last_events() const {
  std::vector<std::string> lines;
  std::uint64_t const n = std::min<std::uint64_t>(traced_, traces_.size());
  for (std::uint64_t i = traced_ - n; i < traced_; ++i) {
    trace const& t = traces_[i % traces_.size()];
    char line[160];
    std::snprintf(line, sizeof line, "%12.3f ms  %-18s %2u %2u  %lld", double(t.at) / 1e6, t.what,
                  t.a, t.b, static_cast<long long>(t.value));
    lines.emplace_back(line);
  }
  return lines;
}

void world::fail(std::string what) {
  if (!broken_) broken_ = violation{std::move(what), now_};
}

void world::check_sum() {
  for (unsigned s = 0; s < config_.supplies; ++s) {
    rate sum = 0;
    for (process const& p : processes_) {
      if (p.what == kind::node && p.is_booted) sum += p.up->usable(s, local(p));
    }
    rate const most = now_ < allowed_until_ ? allowed_[s] : capacity_[s];
    if (sum > most) {
      for (unsigned i = 0; i < processes_.size(); ++i) {
        process const& p = processes_[i];
        if (p.what != kind::node) continue;
        note("  uses", i, s, static_cast<std::int64_t>(p.up->usable(s, local(p))));
        note("  by grant", i, s, static_cast<std::int64_t>(p.up->granted(s, local(p))));
        note("  lends for ns", i, s, p.up->lent_until() - local(p));
      }
      fail("sum: " + std::to_string(sum) + " usable of " + std::to_string(most) + ", supply " +
           std::to_string(s));
    }
  }
}

void world::look() {
  check_sum();
  check_lends();
  check_ledgers();
  if (!calm_ && dice_.chance(5'000)) change_demand();
  for (process const& p : processes_) {
    if (p.what == kind::node && p.is_booted) counts_.usable += p.up->usable(0, local(p));
  }
  counts_.capacity += capacity_[0];
}

// Escrow below a process that its owners have lent: a node's own, a relay's subtree.
void world::check_lends() {
  auto const lent = [this](auto const& self, unsigned id, unsigned to, unsigned s) -> rate {
    process const& p = processes_[id];
    bool const runs = !p.up->is_orphan(local(p));
    std::uint64_t const name = p.up->lent_to();
    if (!runs || (name != 0 && name != to + 1)) return 0;
    if (p.what == kind::node) return escrow_[s];
    rate sum = 0;
    for (unsigned c : p.children) sum += self(self, c, id, s);
    return sum;
  };
  for (unsigned id = 0; id < processes_.size(); ++id) {
    process const& p = processes_[id];
    if (!p.down || !p.is_running) continue;
    for (unsigned c : p.children) {
      for (unsigned s = 0; s < config_.supplies; ++s) {
        rate const counted = p.down->lent_by(c, s, local(p));
        if (counted == 0) continue;
        rate const really = lent(lent, c, id, s);
        if (counted <= really) continue;
        fail("lend: process " + std::to_string(id) + " counts on " + std::to_string(counted) +
             " of " + std::to_string(c) + ", lent are " + std::to_string(really));
      }
    }
  }
}

// What children hold of a parent stands in its ledger. Grants of a former incarnation end with Q.
void world::check_ledgers() {
  for (unsigned id = 0; id < processes_.size(); ++id) {
    process const& p = processes_[id];
    if (!p.down || !p.is_running || p.down->is_quiet(local(p))) continue;
    for (unsigned s = 0; s < config_.supplies; ++s) {
      rate held = 0;
      for (unsigned c : p.children) {
        process const& child = processes_[c];
        if (child.up->obeyed() == id + 1) held += child.up->granted(s, local(child));
      }
      rate const led = p.down->ledger_sum(s, local(p));
      if (held <= led) continue;
      fail("ledger: children of " + std::to_string(id) + " hold " + std::to_string(held) +
           ", the ledger has " + std::to_string(led));
    }
  }
}

void world::check_answer(process const& p, unsigned child, lease::grant const& g,
                         std::vector<rate> const& before) {
  ns const t = local(p);
  for (unsigned s = 0; s < g.supply.size(); ++s) {
    rate const v = g.supply[s].value;
    if (g.supply[s].ver.incarnation == 0 || v <= before[s]) continue;
    rate const others = p.down->ledger_sum(s, t) - p.down->ledger(child, s, t);
    if (others + v <= p.down->budget(s, t)) continue;
    fail("budget: increase to " + std::to_string(v) + " beside " + std::to_string(others) + " of " +
         std::to_string(p.down->budget(s, t)));
  }
}

}  // namespace sluice::sim
