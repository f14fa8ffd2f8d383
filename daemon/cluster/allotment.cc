// SPDX-License-Identifier: Apache-2.0
#include "cluster/allotment.h"

#include <algorithm>

namespace sluice::cluster {

namespace {

__extension__ using u128 = unsigned __int128;

}  // namespace

rate limit_part::of(rate limit) const {
  if (limit == unbounded) return limit;
  return static_cast<rate>(u128{limit} * members / configured);
}

void allotment::run(roster& r, std::span<rate const> capacity, policies::allocator* algorithm,
                    limit_part part, time_ns now) {
  sum(r);
  arrange(r);
  supplies.assign(r.width(), {});
  claim(r, capacity, part);
  if (algorithm != nullptr) {
    algorithm->allocate(claims_, now, grants_);
    for (std::uint32_t s = 0; s < r.width(); ++s)
      for (std::size_t i = 0; i < claimants_[s].size(); ++i)
        r.flows[claimants_[s][i]].granted = grants_[s][i];
  } else {
    follow(r, capacity);
  }
  for (child& c : r.children) std::fill(c.wanted.begin(), c.wanted.end(), 0);
  for (std::uint32_t s = 0; s < r.width(); ++s)
    for (std::uint32_t i : claimants_[s]) {
      supplies[s].granted += r.flows[i].granted;
      divide(r, r.flows[i]);
    }
}

void allotment::sum(roster& r) {
  for (flow& f : r.flows) {
    f.served = f.waiting = f.need = 0;
    f.waiters = f.streams = f.nodes = f.blocked_ppm = 0;
    f.blocked = f.has_bins = false;
    f.granted = 0;
  }
  for (child const& c : r.children) {
    if (!c.live) continue;
    for (stream const& s : c.streams) {
      flow& f = r.at(s.job, s.supply);
      f.served += s.served;
      f.waiting += s.waiting;
      f.waiters += s.waiters;
      f.need = std::max(f.need, s.need);
      f.nodes += s.nodes;
      f.blocked |= s.blocked;
      f.blocked_ppm = std::max(f.blocked_ppm, s.blocked_ppm);
      f.has_bins |= s.bins != no_bins;
      ++f.streams;
    }
  }
}

/// The algorithms want the streams of one flow side by side. A counting sort does it in one pass.
void allotment::arrange(roster& r) {
  std::uint32_t total = 0;
  for (flow& f : r.flows) {
    f.first = total;
    total += f.streams;
  }
  order_.resize(total);
  for (std::uint32_t c = 0; c < r.children.size(); ++c) {
    if (!r.children[c].live) continue;
    std::vector<stream> const& streams = r.children[c].streams;
    for (std::uint32_t i = 0; i < streams.size(); ++i)
      order_[r.at(streams[i].job, streams[i].supply).first++] = {c, i};
  }
  for (flow& f : r.flows) f.first -= f.streams;
}

/// Where requests are promised, the reservation is what they take by what the nodes say.
void allotment::promise(roster& r) {
  needs_.resize(r.width());
  needy_.resize(r.width());
  for (std::uint32_t s = 0; s < r.width(); ++s) {
    needs_[s].clear();
    needy_[s].clear();
  }
  for (std::uint32_t i = 0; i < r.flows.size(); ++i) {
    flow const& f = r.flows[i];
    if (f.streams == 0) continue;
    std::uint32_t const s = i % r.width();
    bool const follows = f.deal.follows && f.need != 0;
    rate const promised = f.deal.reservation;
    rate const need = follows ? std::min(f.need, f.deal.most) : promised;
    if (follows) r.flows[i].deal.reservation = need;
    needs_[s].push_back(policies::taking_room(promised, need, f.served, f.blocked));
    needy_[s].push_back(i);
  }
  for (std::uint32_t s = 0; s < r.width(); ++s) {
    supplies[s].bookable = std::min(supplies[s].bookable, r.policy().supplies[s].promisable);
    supplies[s].reserved += policies::fit(needs_[s], supplies[s].bookable);
    for (std::size_t k = 0; k < needy_[s].size(); ++k)
      if (flow& f = r.flows[needy_[s][k]]; f.blocked) f.deal.reservation = needs_[s][k].given;
  }
}

void allotment::claim(roster& r, std::span<rate const> capacity, limit_part part) {
  claims_.resize(r.width());
  claimants_.resize(r.width());
  grants_.resize(r.width());
  for (std::uint32_t s = 0; s < r.width(); ++s) {
    claims_[s].claims.clear();
    claimants_[s].clear();
    claims_[s].capacity = supplies[s].capacity = supplies[s].bookable = capacity[s];
  }
  for (std::uint32_t i = 0; i < r.flows.size(); ++i)
    if (flow& f = r.flows[i]; f.streams != 0) f.deal = r.deal(r.jobs[i / r.width()], i % r.width());
  if (r.policy().promises_requests) promise(r);
  for (std::uint32_t i = 0; i < r.flows.size(); ++i) {
    flow& f = r.flows[i];
    if (f.streams == 0) continue;
    std::uint32_t const s = i % r.width();
    job const& j = r.jobs[i / r.width()];
    f.limit = f.deal.limit;
    f.deal.limit = part.of(f.limit);
    f.deal.reservation = std::min(f.deal.reservation, f.deal.limit);
    rate const wanted = f.blocked ? unbounded : f.served;
    claims_[s].claims.push_back({.job = j.key,
                                 .weight = f.deal.weight,
                                 .reservation = f.deal.reservation,
                                 .limit = f.deal.limit,
                                 .declared = f.deal.reservation,
                                 .priority = f.deal.priority,
                                 .served = f.served,
                                 .waiting = f.waiting,
                                 .waiters = f.waiters,
                                 .blocked = f.blocked});
    claimants_[s].push_back(i);
    supply_state& state = supplies[s];
    state.served += f.served;
    state.reserved += std::min(f.deal.reservation, wanted);
    if (f.blocked)
      ++state.blocked_jobs;
    else
      state.demand += f.served;
  }
  for (supply_state& state : supplies)
    state.overbooked = state.capacity > 0 && state.reserved > state.bookable;
}

/// Relay: what the parent means each job to have, scaled down where the own grant is less. A job
/// that the parent does not know yet waits until it does: one report, at once.
void allotment::follow(roster& r, std::span<rate const> capacity) {
  for (std::uint32_t s = 0; s < r.width(); ++s) {
    u128 total = 0;
    for (std::uint32_t i : claimants_[s]) total += r.flows[i].amount;
    for (std::uint32_t i : claimants_[s]) {
      flow& f = r.flows[i];
      // The parent knows limits that we may not: its amount is the limit of the job here.
      f.granted =
          total > capacity[s] ? static_cast<rate>(u128{f.amount} * capacity[s] / total) : f.amount;
      f.deal.limit = f.amount;
      f.limit = f.limit_above.value_or(f.limit);
    }
  }
}

void allotment::divide(roster& r, flow& f) {
  std::span<place const> const streams(order_.data() + f.first, f.streams);
  parts_.resize(streams.size());
  if (streams.size() == 1) {
    parts_[0] = f.granted;
    f.most_weight = policies::unbounded;
  } else if (!f.has_bins) {
    leaves_.clear();
    for (place p : streams) {
      stream const& s = r.children[p.child].streams[p.stream];
      leaves_.push_back({s.served, s.waiters, s.blocked});
    }
    f.most_weight = policies::split(leaves_, f.granted, parts_);
  } else {
    bins_.resize(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      child const& c = r.children[streams[i].child];
      stream const& s = c.streams[streams[i].stream];
      if (s.bins != no_bins) {
        bins_[i] = histogram_of(c, s);
      } else {
        bins_[i] = {};
        policies::add_demand(bins_[i], s.served, s.waiters, s.blocked);
      }
    }
    f.most_weight = policies::split(bins_, f.granted, parts_);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    child& c = r.children[streams[i].child];
    stream& s = c.streams[streams[i].stream];
    s.wanted = parts_[i];
    c.wanted[s.supply] += parts_[i];
  }
}

}  // namespace sluice::cluster
