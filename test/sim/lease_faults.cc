// SPDX-License-Identifier: Apache-2.0
// What happens to the processes, and the calms: all is healed, one cluster is left, one node wants
// everything. It must have everything that is not somebody else's floor before patience ends; its
// own escrow, if it is too far from its parent to be believed.
#include <algorithm>

#include "lease_world.h"

namespace sluice::sim {

using kind = process::kind;

void world::fault() {
  ++counts_.faults;
  unsigned const k = config_.clusters, r = config_.relays, n = config_.nodes;
  auto const cluster = [&] { return static_cast<unsigned>(dice_.below(k)); };
  auto const relay = [&] { return k + static_cast<unsigned>(dice_.below(r)); };
  auto const node = [&] { return k + r + static_cast<unsigned>(dice_.below(n)); };
  ns const brief = dice_.between(10 * ms, 600 * ms), longer = dice_.between(500 * ms, 5000 * ms);
  ns const time = dice_.chance(500'000) ? brief : longer;
  switch (dice_.below(11)) {
    case 0:
      return crash(cluster(), time);
    case 1:
      return crash(r ? relay() : cluster(), time);
    case 2:
      return crash(node(), time);
    case 3:
      return reboot(node(), longer);
    case 4:
      return r && dice_.chance(300'000) ? reboot(relay(), longer) : crash(node(), brief);
    case 5:
    case 6:
      return cut(time);
    case 7: {
      auto const id = static_cast<unsigned>(dice_.below(processes_.size()));
      note("stopped", id);
      processes_[id].stopped_until = now_ + time;
      return;
    }
    case 8:
      return shrink();
    case 9:
      return move_away(static_cast<unsigned>(dice_.below(processes_.size())), longer);
    default: {
      unsigned const id = r && dice_.chance(500'000) ? relay() : cluster();
      process& p = processes_[id];
      unsigned const child = p.children[dice_.below(p.children.size())];
      note("forgets", id, child);
      if (p.is_running) p.down->forget(child, local(p));
    }
  }
}

// The daemon dies; what a node may use lies in the segment and goes on.
void world::crash(unsigned id, ns for_ns) {
  note("crash", id);
  processes_[id].is_running = false;
  schedule(now_ + for_ns, event_kind::revive, id);
}

void world::reboot(unsigned id, ns for_ns) {
  note("reboot", id);
  processes_[id].is_running = false;
  processes_[id].is_booted = false;
  schedule(now_ + for_ns, event_kind::revive, id);
}

void world::revive(unsigned id) {
  process& p = processes_[id];
  if (p.is_running || !p.may_return) return;
  note(p.is_booted ? "starts" : "boots", id);
  if (!p.is_booted || dice_.chance(100'000)) p.disk.reset();
  if (!p.is_booted) {
    p.clock.offset = -now_ + dice_.between(1, 60'000) * ms;
    p.clock.ppm = dice_.between(-config_.clock_ppm, config_.clock_ppm);
  }
  p.is_running = p.is_booted = true;
  // The clock may have gone back (or far ahead) between two lives: then the number is any new one.
  bool const jumps = dice_.chance(200'000);
  ++p.lives;
  p.incarnation = jumps ? dice_.below(1000) * 1'000'000 + p.lives : p.incarnation + 1'000'000'000;
  start(id);
  if (!p.up) return;
  if (!p.disk) {
    p.up->booted(local(p));
  } else if (config_.obeys.remembers) {
    p.up->remember(*p.disk, local(p));
  }
}

// Two sides that do not hear each other, or one that is not heard.
void world::cut(ns for_ns) {
  note("cut", 0, 0, for_ns);
  std::uint64_t const side = dice_.next();
  bool const one_way = dice_.chance(300'000);
  for (unsigned a = 0; a < cut_.size(); ++a) {
    for (unsigned b = 0; b < cut_.size(); ++b) {
      bool const from = side >> a & 1, to = side >> b & 1;
      cut_[a][b] = one_way ? from && !to : from != to;
    }
  }
  schedule(now_ + for_ns, event_kind::heal, 0);
}

// The round trip lies between A and L: reports are answered, and not believed.
void world::move_away(unsigned id, ns for_ns) {
  process& p = processes_[id];
  p.far = dice_.between(config_.time.believe_ns + 20 * ms, config_.time.lease_ns - 60 * ms) / 2;
  p.far_until = now_ + for_ns;
  note("far", id, 0, p.far);
}

// The operator changes the capacity. What was given under a larger one may run for a lease.
void world::shrink() {
  if (config_.owner == lease::pool_owner::none || now_ < allowed_until_) return;
  note("capacity");
  allowed_ = capacity_;
  allowed_until_ = now_ + lease::timers(config_.time).ledger_ns() * 11 / 10;
  for (unsigned s = 0; s < config_.supplies; ++s) {
    rate const own = config_.nodes * (escrow_[s] + floor_[s]);
    pool_[s] = dice_.below(200'000'000);
    capacity_[s] = own + pool_[s];
    allowed_[s] = std::max(allowed_[s], capacity_[s]);
  }
  auto const list = terms();
  for (process& p : processes_) {
    if (p.what == kind::cluster) p.down->set_terms(list);
  }
}

void world::change_demand() {
  for (process& p : processes_) {
    for (rate& d : p.demand) d = dice_.chance(300'000) ? 0 : 1 + dice_.below(1000);
  }
}

// ---- calms ----

// From any state: every lend in doubt ends, every old grant ends, then first contact of each level.
ns world::patience() const {
  unsigned deepest = 0;
  for (process const& p : processes_) deepest = std::max(deepest, p.level);
  lease::timers const t = config_.time;
  ns const search = config_.shape == "flat" || config_.shape == "relay" || config_.shape == "deep"
                        ? static_cast<ns>(config_.clusters - 1)
                        : 3;
  return std::max(t.start_ns(), t.lend_ns(deepest)) + t.ledger_ns() +
         (4 + 4 * ns{deepest}) * t.cycle_ns + search * (t.silent_ns + t.cycle_ns);
}

void world::begin_calm() {
  ++counts_.calms;
  calm_ = true;
  for (auto& row : cut_) row.assign(row.size(), false);
  std::vector<event> kept;
  for (; !queue_.empty(); queue_.pop()) {
    if (queue_.top().kind != event_kind::deliver) {
      kept.push_back(queue_.top());
    } else {
      spare_.push_back(queue_.top().who);
    }
  }
  for (event const& e : kept) queue_.push(e);
  unsigned const left = static_cast<unsigned>(dice_.below(config_.clusters));
  for (unsigned i = 0; i < processes_.size(); ++i) {
    process& p = processes_[i];
    p.stopped_until = p.far_until = 0;
    p.demand.assign(config_.supplies, 0);
    if (p.what != kind::cluster || i == left) {
      revive(i);
      continue;
    }
    p.is_running = p.may_return = false;
  }
  chosen_ = config_.clusters + config_.relays + static_cast<unsigned>(dice_.below(config_.nodes));
  processes_[chosen_].demand.assign(config_.supplies, 1000);
  if (dice_.chance(300'000)) move_away(chosen_, patience());
  note("calm", left, chosen_, patience());
  schedule(now_ + patience(), event_kind::calm, 0);
}

void world::end_calm() {
  process const& p = processes_[chosen_];
  bool const is_far = p.far_until != 0;
  for (unsigned s = 0; s < config_.supplies; ++s) {
    rate const all = floor_[s] + config_.nodes * escrow_[s] + pool_[s];
    rate const full = is_far ? floor_[s] + escrow_[s] : all;
    rate const has = p.up->usable(s, local(p));
    if (has < full) {
      fail("liveness: node " + std::to_string(chosen_) + " has " + std::to_string(has) + " of " +
           std::to_string(full));
    }
  }
  calm_ = false;
  for (unsigned i = 0; i < config_.clusters; ++i) {
    processes_[i].may_return = true;
    revive(i);
  }
  change_demand();
  schedule(now_ + dice_.between(5000 * ms, 60'000 * ms), event_kind::calm, 0);
}

}  // namespace sluice::sim
