// SPDX-License-Identifier: Apache-2.0
// What a child is told: its target of each supply, cut by the ledger, and how that is meant to be
// split over its streams, cut by the limits of jobs that are on other children too.
#include <algorithm>

#include "cluster/arbiter.h"

namespace sluice::cluster {

namespace {

__extension__ using u128 = unsigned __int128;

/// A value this close to its target stays: it saves a version and its acknowledgement. Safe in both
/// directions, because the ledger knows what is held, not what was meant.
constexpr rate close_enough(rate target) { return target / 256; }
/// Worth a message of its own before the next report: less, when others wait for it.
constexpr rate worth_telling(rate target) { return target / 64; }
constexpr rate worth_taking(rate target) { return target / 128; }

constexpr rate distance(rate a, rate b) { return a > b ? a - b : b - a; }

}  // namespace

rate arbiter::target(std::uint32_t number, std::uint32_t supply, time_ns now) const {
  rate const wanted = roster_.children[number].wanted[supply];
  rate const current = parent_.current(number, supply, now);
  // Just restarted: nobody may get more yet, so nobody need lose anything.
  if (parent_.is_quiet(now)) return current;
  bool const stays = !exact_ && distance(wanted, current) <= close_enough(wanted);
  return stays ? current : wanted;
}

/// True when an answer now would bring the child a good step towards its target.
bool arbiter::is_off_target(std::uint32_t number, time_ns now) const {
  child const& c = roster_.children[number];
  if (parent_.is_quiet(now)) return false;
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    rate const wanted = parent_.meant(number, s, c.wanted[s], now);
    rate const current = parent_.current(number, s, now);
    if (current > wanted && current - wanted > worth_taking(wanted)) return true;
    if (current + worth_telling(wanted) >= wanted) continue;
    rate const others = parent_.ledger_sum(s, now) - parent_.ledger(number, s, now);
    rate const budget = parent_.budget(s, now);
    rate const room = budget > others ? budget - others : 0;
    rate const next = std::min(wanted, room);
    if (next > current && next - current >= std::max(worth_telling(wanted), (wanted - current) / 4))
      return true;
  }
  for (stream const& s : c.streams) {
    rate const meant = stream_value(c, s, parent_.current(number, s.supply, now));
    rate const far =
        std::max({meant / 8, s.given / 8, policy().supplies[s.supply].capacity / 1000});
    if (distance(meant, s.given) > far) return true;
  }
  return false;
}

/// What a stream may be told when its child has `value` of the supply.
rate arbiter::stream_value(child const& c, stream const& s, rate value) const {
  rate const total = c.wanted[s.supply];
  rate v = value >= total ? s.wanted : static_cast<rate>(u128{s.wanted} * value / total);
  flow const& f = roster_.at(s.job, s.supply);
  if (f.deal.limit == unbounded) return v;
  rate const others = f.held - s.held();
  rate room = f.deal.limit > others ? f.deal.limit - others : 0;
  if (f.unknown > (s.unknown ? 1u : 0u)) room = 0;
  // Before it ever acknowledged: it holds at least what it uses.
  rate const in_force = s.unknown ? std::max(s.given, s.served) : s.given;
  return std::min(v, std::max(room, in_force));
}

/// A split over no job at all is not the same as no split. An entry with this job says so.
constexpr core::job_id no_job = 0;

/// Of the supplies that the policy no longer names, those that the child named itself.
void arbiter::list_supplies(child const& c) {
  listed_.begin(roster_.width());
  for (std::uint32_t s = 0; s < roster_.width(); ++s)
    if (policy().supplies[s].capacity != 0) listed_.add(s);
  for (std::uint32_t s : c.supply)
    if (s != no_supply) listed_.add(s);
}

/// True when a limit kept a stream clearly below what it should have.
bool arbiter::write_streams(child& c, wire::grant& g) {
  bool clipped = false;
  for (stream& s : c.streams) {
    std::uint32_t const place = listed_.place(s.supply);
    if (place == wire::supply_list::left_out) {  // who is not named gets nothing
      roster_.sent(s, 0);
      continue;
    }
    rate const v = stream_value(c, s, g.lease.supply[s.supply].value);
    clipped |= v + worth_telling(s.wanted) < s.wanted;
    roster_.sent(s, v);
    g.streams.push_back({s.key, place, v, roster_.at(s.job, s.supply).limit});
  }
  if (g.streams.empty() && !g.supplies.empty()) g.streams.push_back({no_job});
  return clipped;
}

void arbiter::mark_hungry(std::uint32_t number, time_ns now) {
  child& c = roster_.children[number];
  bool lacks = false;
  for (std::uint32_t s = 0; s < roster_.width() && !lacks; ++s)
    lacks = parent_.current(number, s, now) + worth_telling(c.wanted[s]) < c.wanted[s];
  for (std::size_t i = 0; i < c.streams.size() && !lacks; ++i)
    lacks = c.streams[i].given + worth_telling(c.streams[i].wanted) < c.streams[i].wanted;
  if (!lacks || c.hungry) return;
  c.hungry = true;
  hungry_.push_back(number);
}

bool arbiter::answer(std::uint32_t number, time_ns now, outbox& out) {
  child& c = roster_.children[number];
  for (std::uint32_t s = 0; s < roster_.width(); ++s) wanted_[s] = target(number, s, now);
  std::optional<lease::grant> given = parent_.answer(number, wanted_, now);
  if (!given) return false;
  auto& g = std::get<wire::grant>(grant_);
  g.lease = std::move(*given);
  g.supplies.clear();
  g.streams.clear();
  g.sequence = ++c.sequence;
  if (!g.lease.supply.empty()) {
    list_supplies(c);
    g.supplies = listed_.pick(keys_);
    // Just restarted: we do not know what jobs hold elsewhere, so the split stays as it was.
    if (!parent_.is_quiet(now)) {
      write_streams(c, g);
      if (c.split_from == 0) c.split_from = c.sequence;
    }
    roster_.sent(c, now, now + set_.time.ledger_ns());
    mark_hungry(number, now);
    g.lease.supply = listed_.pick(g.lease.supply);
  }
  return out.send(number, grant_);
}

}  // namespace sluice::cluster
