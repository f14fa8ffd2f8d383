// SPDX-License-Identifier: Apache-2.0
#include "cluster/relay_side.h"

#include <algorithm>

#include "base/fair_room.h"
#include "lease/relay.h"
#include "wire/codec.h"

namespace sluice::cluster {

namespace {

constexpr time_ns early_ns = 20'000'000;    // between reports that do not wait for their cycle
constexpr time_ns turn_ns = 1'000'000'000;  // of streams that a report has no room for

/// Of whoever says that very many wait no more is passed on than counts here.
void add_leaf(policies::demand_bins& to, policies::leaf const& l, std::uint64_t most_weight) {
  auto const waiters = static_cast<std::uint32_t>(std::min<std::uint64_t>(l.waiters, most_weight));
  policies::add_demand(to, l.served, waiters, l.blocked);
}

/// Of a stream in a report; `b` null: it has no histogram.
std::size_t bytes_of_stream(policies::demand_bins const* b) {
  wire::report_size size = {.streams = 1};
  if (b != nullptr) {
    size.histograms = 1;
    for (unsigned i = 0; i < policies::demand_bins::count; ++i)
      size.bins += b->nodes[i] != 0 || b->demand[i] != 0;
  }
  return wire::bytes_of(size) - wire::bytes_of({});
}

policies::demand_bins bounded(policies::demand_bins b, std::uint64_t most_weight) {
  if (b.blocked != 0 && b.blocked_weight / b.blocked >= most_weight)
    b.blocked_weight = most_weight * b.blocked;
  return b;
}

std::uint32_t cut(std::uint64_t sum) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, ~std::uint32_t{0}));
}

/// Of one that only silent children have, nothing but the name: none of them said that it is over.
wire::job_entry entry_of(job const& j, job_total const& total) {
  wire::job_entry e;
  e.job = j.key;
  e.uid = j.uid;
  e.name = j.name;
  if (total.children == 0) return e;
  e.class_key = j.class_key;
  e.qos_class = j.qos_class;
  e.processes = cut(total.processes);
  e.escaped = cut(total.escaped);
  e.watched = total.is_watched();
  return e;
}

}  // namespace

std::vector<wire::job_entry> jobs_below(roster const& r, bool all) {
  std::vector<job_total> const totals = r.totals();
  std::vector<wire::job_entry> out;
  for (std::uint32_t row = 0; row < totals.size(); ++row) {
    job_total const& total = totals[row];
    bool const is_known = total.children + total.away != 0;
    if (is_known && (all || !r.jobs[row].is_announced)) out.push_back(entry_of(r.jobs[row], total));
  }
  return out;
}

relay_side::relay_side(arbiter& below, std::uint64_t incarnation)
    : below_(below), up_(below.set().time, incarnation) {
  report_.lease.child_incarnation = incarnation;
}

void relay_side::plan_changed() {
  for (std::uint32_t s : below_.renewed()) up_.renew(s);
}

/// Of the supplies that the policy no longer names, those on which something is counted still.
void relay_side::list_supplies(time_ns now) {
  std::vector<supply_row> const& rows = below_.policy().supplies;
  std::vector<bool> const used = below_.who().used();
  listed_.begin(rows.size());
  for (std::uint32_t s = 0; s < rows.size(); ++s)
    if (rows[s].capacity != 0) listed_.add(s);
  for (std::uint32_t s = 0; s < rows.size(); ++s)
    if (used[s] || !up_.is_unused(s, now)) listed_.add(s);
  report_.supplies.clear();
  for (std::uint32_t s : listed_.numbers()) report_.supplies.push_back(rows[s].key);
}

void relay_side::on_welcome(wire::welcome const& w) {
  std::uint64_t const name = wire::peer_key(static_cast<std::uint32_t>(w.who), w.name);
  if (name != parent_) sequence_ = window_ = applied_ = life_ = 0;
  parent_ = name;
  awaiting_ = false;
  at_once_ = streams_due_ = true;
  if (w.cycle_ns <= 0 || w.lease_ns <= 0) return;
  up_.set_timers(lease::timers_of(w.cycle_ns, w.lease_ns, w.level));
  below_.set_timers(lease::timers_of(w.cycle_ns, w.lease_ns, w.level + 1));
}

/// The lease part of a grant in the order of our supplies.
lease::grant const& relay_side::as_ours(wire::grant const& g) {
  mapped_ = g.lease;
  if (g.lease.supply.empty()) return mapped_;
  mapped_.supply.assign(below_.who().width(), {});
  for (std::size_t i = 0; i < std::min(g.supplies.size(), g.lease.supply.size()); ++i) {
    std::uint32_t const s = below_.policy().supply_of(g.supplies[i]);
    if (s != no_supply) mapped_.supply[s] = g.lease.supply[i];
  }
  return mapped_;
}

void relay_side::on_grant(wire::grant const& g, time_ns now) {
  awaiting_ = false;
  if (up_.on_grant(parent_, as_ours(g), now)) at_once_ = true;
  if (up_.parent_life() != g.lease.parent_incarnation) return;
  if (up_.parent_life() < life_) sequence_ = window_ = applied_ = 0;  // its clock went back
  life_ = up_.parent_life();
  if (g.sequence <= sequence_) return;
  sequence_ = g.sequence;
  // No split said: the parent restarted and does not know it yet; ours stays.
  if (g.streams.empty()) return;
  bool const opens = window_ == 0 || window_ == applied_;
  if (opens) window_ = sequence_;
  below_.set_amounts(g, opens);
}

void relay_side::serve(time_ns now) {
  lease::relay_serve(up_, below_.ledger(), below_.who().width(), now);
  bool const alone = up_.is_orphan(now) && !up_.is_accepted(now);
  std::uint32_t members = 0, configured = 1;
  for (unsigned s = 0; alone && s < below_.who().width(); ++s) {
    std::uint32_t here = 0;
    below_.ledger().lent_below(s, now, here);
    members = std::max(members, here);
    configured = std::max(configured, below_.policy().supplies[s].lease.configured);
  }
  below_.obey(!alone, members, configured);
}

time_ns relay_side::due() const {
  time_ns const at = at_once_ ? std::min(next_report_, reported_at_ + early_ns) : next_report_;
  return awaiting_ ? std::max(at, reported_at_ + 2 * below_.set().time.cycle_ns) : at;
}

bool relay_side::wants_to_report(time_ns now, bool demand_turned) {
  if (parent_ == 0) return false;
  streams_due_ |= demand_turned;
  at_once_ |=
      demand_turned || lease::relay_owes_ack(up_, below_.ledger(), below_.who().width(), now);
  // One report is on its way at most; the answer to it may have been lost.
  if (awaiting_ && now - reported_at_ < 2 * below_.set().time.cycle_ns) return false;
  if (at_once_ && now - reported_at_ >= early_ns) return true;
  return now >= next_report_;
}

wire::report const& relay_side::make_report(time_ns now) {
  unsigned const supplies = below_.who().width();
  lease::relay_lend(up_, below_.ledger(), supplies, now);
  list_supplies(now);
  report_.lease = up_.make_report(parent_, now);
  report_.lease.supply = listed_.pick(report_.lease.supply);
  report_.policy_hash = below_.policy().hash;
  report_.early = at_once_;
  if (window_ != applied_ && below_.amounts_settled(now)) {
    applied_ = window_;
    if (sequence_ != window_) {
      window_ = sequence_;
      below_.open_window();
    }
  }
  report_.applied_sequence = applied_;
  streams_due_ |= now >= next_report_;
  report_.same_streams = !streams_due_;
  report_.streams.clear();
  report_.bins.clear();
  if (streams_due_) merge_streams(now);
  report_.speeds.clear();
  for (std::uint32_t s = 0; s < supplies; ++s) {
    policies::call_speeds const of = below_.take_speeds(s);
    if (of.calls != 0 && listed_.place(s) != wire::supply_list::left_out)
      report_.speeds.push_back({listed_.place(s), of});
  }
  return report_;
}

void relay_side::sent(time_ns now) {
  awaiting_ = true;
  at_once_ = streams_due_ = false;
  reported_at_ = now;
  if (now < next_report_) return;  // an early one changes nothing
  next_report_ += below_.set().time.cycle_ns;
  if (next_report_ <= now) next_report_ = now + below_.set().time.cycle_ns;
}

/// By merged stream: of the children that have it, the one with the fewest. So one that names
/// another's jobs makes none of them its own.
std::vector<std::uint64_t> relay_side::owners() const {
  roster const& r = below_.who();
  std::vector<std::uint64_t> out(report_.streams.size());
  std::vector<std::size_t> fewest(out.size(), ~std::size_t{0});
  for (std::size_t c = 0; c < r.children.size(); ++c) {
    child const& one = r.children[c];
    for (stream const& s : one.streams) {
      std::uint32_t const slot = slots_[s.job * r.width() + s.supply];
      if (!one.live || slot == 0 || fewest[slot - 1] <= one.streams.size()) continue;
      fewest[slot - 1] = one.streams.size();
      out[slot - 1] = c;
    }
  }
  return out;
}

/// What is too long for a message is left out: what is at work comes first, and each child has its
/// part of the room.
void relay_side::cut_streams(time_ns now) {
  std::size_t const room = wire::most_bytes - wire::bytes_of({report_.supplies.size()});
  std::vector<room_wish> wishes(report_.streams.size());
  std::size_t all = 0;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    wire::stream_report const& s = report_.streams[i];
    bool const has_bins = sum_of_[i] != no_bins;
    wishes[i].size = bytes_of_stream(has_bins ? &sums_[sum_of_[i]] : nullptr);
    wishes[i].is_at_work = wire::is_at_work(s);
    all += wishes[i].size;
  }
  if (all <= room) return;
  std::vector<std::uint64_t> const owner = owners();
  for (std::size_t i = 0; i < wishes.size(); ++i) wishes[i].owner = owner[i];
  std::vector<bool> const has_room =
      fair_room(wishes, room, static_cast<std::uint64_t>(now / turn_ns));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < has_room.size(); ++i) {
    if (!has_room[i]) continue;
    report_.streams[kept] = report_.streams[i];
    sum_of_[kept++] = sum_of_[i];
  }
  report_.streams.resize(kept);
}

/// A job on one node goes up as that node said it: exact, and a tenth of the bytes of a histogram.
void relay_side::merge_streams(time_ns now) {
  roster const& r = below_.who();
  only_.clear();
  sums_.clear();
  sum_of_.clear();
  slots_.assign(r.flows.size(), 0);
  for (child const& c : r.children) {
    if (!c.live) continue;
    for (std::size_t i = 0; i < c.streams.size(); ++i) {
      stream const& s = c.streams[i];
      if (listed_.place(s.supply) == wire::supply_list::left_out) continue;
      std::uint32_t& slot = slots_[s.job * r.width() + s.supply];
      std::uint64_t const most_weight = r.at(s.job, s.supply).most_weight;
      bool const is_first = slot == 0;
      if (is_first) {
        report_.streams.emplace_back();
        only_.emplace_back();
        sum_of_.push_back(no_bins);
        slot = static_cast<std::uint32_t>(report_.streams.size());
        wire::stream_report& first = report_.streams.back();
        first.job = s.key;
        first.supply = listed_.place(s.supply);
        first.class_key = s.class_key;
        first.nodes = 0;
      }
      wire::stream_report& sum = report_.streams[slot - 1];
      sum.served += s.served;
      sum.waiting += s.waiting;
      sum.waiters += s.waiters;
      sum.need = std::max(sum.need, s.need);
      sum.blocked_ppm = std::max(sum.blocked_ppm, s.blocked_ppm);
      if (is_first && s.bins == no_bins) {
        only_[slot - 1] = {s.served, s.waiters, s.blocked};
      } else {
        std::uint32_t& place = sum_of_[slot - 1];
        if (place == no_bins) {
          place = static_cast<std::uint32_t>(sums_.size());
          sums_.emplace_back();
          if (!is_first) add_leaf(sums_.back(), only_[slot - 1], most_weight);
        }
        if (s.bins != no_bins)
          policies::merge(sums_[place], bounded(histogram_of(c, s), most_weight));
        else
          add_leaf(sums_[place], {s.served, s.waiters, s.blocked}, most_weight);
      }
      sum.nodes += s.nodes;
    }
  }
  cut_streams(now);
  for (std::uint32_t i = 0; i < report_.streams.size(); ++i)
    if (sum_of_[i] != no_bins) wire::put_bins(report_, i, sums_[sum_of_[i]]);
}

}  // namespace sluice::cluster
