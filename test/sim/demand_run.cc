// SPDX-License-Identifier: Apache-2.0
// Buckets on nodes, a controller 5 ms away, a cycle of 100 ms. Reports say what a node would: what
// was served, who waits, and whether anybody waited. Amounts are milli-tokens and whole, so a run
// gives the same figures everywhere. The lease protocol is left out: it is simulated by itself and
// costs the same whatever the algorithm.
#include "demand_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "policies/allocate.h"

namespace sluice::sim {
namespace {

using policies::rate;

constexpr std::uint32_t cycle_steps = 20;  // 100 ms
constexpr std::uint32_t trip_steps = 1;    // one way
constexpr rate burst_steps = 4;            // 20 ms

struct bucket {
  rate granted = 0;  // milli-tokens/s
  rate tokens = 0;   // milli-tokens
  rate backlog = 0;
  rate offered = 0;  // of this step, with the backlog
  rate served = 0;   // of this step
  rate cycle_served = 0;
  bool waits = false;
  bool blocked = false;

  void start_step(rate wanted_per_s, bool piles_up) {
    offered = wanted_per_s * 1000 / steps_per_s + (piles_up ? backlog : 0);
    tokens = std::min(tokens + granted / steps_per_s, granted * burst_steps / steps_per_s);
  }
  void serve(rate amount, bool piles_up) {
    served = std::min(amount, offered);
    tokens -= std::min(tokens, served);
    cycle_served += served;
    backlog = piles_up ? offered - served : 0;
    waits = served < offered;
    blocked |= waits;
  }
};

/// What happened to each job in each step.
struct history {
  std::vector<std::vector<rate>> wanted, ideal, served;  // [job][step]
};

/// What an administrator who knew it all would promise: the max-min share of the mean demand.
std::vector<rate> promises(demand_series const& series) {
  std::vector<rate> wanted(series.streams.size()), sum(series.jobs);
  std::vector<std::uint32_t> since(series.streams.size());
  auto const add = [&](std::size_t stream, std::uint32_t until) {
    sum[series.streams[stream].job] += wanted[stream] * (until - since[stream]);
    since[stream] = until;
  };
  for (demand_change const& c : series.changes) {
    add(c.stream, c.step);
    wanted[c.stream] = c.wanted;
  }
  for (std::size_t s = 0; s < wanted.size(); ++s) add(s, series.steps);
  std::vector<policies::basin> means;
  for (rate s : sum) means.push_back({0, s * 1000 / series.steps, 1000});
  policies::water_fill(means, series.capacity * 1000, sum);
  return sum;
}

class world {
 public:
  world(demand_series const& series, std::string_view name, node_split how)
      : series_(series),
        how_(how),
        promised_(promises(series)),
        wanted_(series.streams.size()),
        buckets_(wanted_.size()) {
    if (name != "ideal") allocator_ = policies::find_algorithm(name)->make();
    nodes_.resize(series.jobs);
    for (std::size_t s = 0; s < series.streams.size(); ++s)
      nodes_[series.streams[s].job].push_back(s);
    for (auto const& nodes : nodes_)
      for (std::size_t s : nodes)
        buckets_[s].granted = series.capacity * 1000 / series.jobs / nodes.size();
    for (auto* rows : {&past_.wanted, &past_.ideal, &past_.served}) rows->resize(series.jobs);
  }

  history run() {
    auto change = series_.changes.begin();
    for (std::uint32_t step = 0; step < series_.steps; ++step) {
      for (; change != series_.changes.end() && change->step == step; ++change)
        wanted_[change->stream] = change->wanted;
      if (allocator_ && step > 0 && step % cycle_steps == 0) report(step);
      if (step % cycle_steps == 2 * trip_steps) apply();
      pass();
    }
    return std::move(past_);
  }

 private:
  void pass() {
    std::vector<policies::basin> basins;
    for (std::size_t s = 0; s < buckets_.size(); ++s)
      buckets_[s].start_step(wanted_[s], series_.streams[s].piles_up);
    for (auto const& nodes : nodes_) basins.push_back({0, sum(nodes, &bucket::offered), 1000});
    std::vector<rate> ideal(basins.size());
    policies::water_fill(basins, series_.capacity * 1000 / steps_per_s, ideal);
    for (std::size_t job = 0; job < nodes_.size(); ++job) {
      serve(nodes_[job], ideal[job]);
      past_.wanted[job].push_back(basins[job].high);
      past_.ideal[job].push_back(ideal[job]);
      past_.served[job].push_back(sum(nodes_[job], &bucket::served));
    }
  }

  void serve(std::vector<std::size_t> const& nodes, rate ideal) {
    std::vector<rate> amounts;
    for (std::size_t s : nodes) amounts.push_back(buckets_[s].tokens);
    if (!allocator_) {
      std::vector<policies::basin> basins;
      for (std::size_t s : nodes) basins.push_back({0, buckets_[s].offered, 1000});
      policies::water_fill(basins, ideal, amounts);
    }
    for (std::size_t n = 0; n < nodes.size(); ++n)
      buckets_[nodes[n]].serve(amounts[n], series_.streams[nodes[n]].piles_up);
  }

  rate sum(std::vector<std::size_t> const& nodes, rate bucket::*member) const {
    return std::accumulate(nodes.begin(), nodes.end(), rate{0}, [&](rate so_far, std::size_t s) {
      return so_far + buckets_[s].*member;
    });
  }

  /// Reports leave at the end of a cycle; what they bring is in force two trips later.
  void report(std::uint32_t step) {
    policies::supply supply{series_.capacity * 1000, {}};
    std::vector<std::vector<policies::leaf>> leaves;
    for (std::size_t job = 0; job < nodes_.size(); ++job) {
      policies::claim c;
      c.job = job + 1;
      c.declared = promised_[job];
      c.priority = job % 3;
      leaves.emplace_back();
      for (std::size_t s : nodes_[job]) {
        bucket& b = buckets_[s];
        rate const served = b.cycle_served * steps_per_s / cycle_steps;
        std::uint32_t const waiters = b.waits ? series_.streams[s].threads : 0;
        leaves.back().push_back({served, waiters, b.blocked});
        c.served += served;
        c.waiters += waiters;
        c.blocked |= b.blocked;
        b.cycle_served = 0;
        b.blocked = false;
      }
      supply.claims.push_back(c);
    }
    std::vector<std::vector<rate>> grants;
    allocator_->allocate({&supply, 1}, std::int64_t{step} * step_ns, grants);
    pending_.assign(buckets_.size(), 0);
    for (std::size_t job = 0; job < nodes_.size(); ++job) {
      std::vector<rate> parts(leaves[job].size());
      if (how_ == node_split::equal)
        std::fill(parts.begin(), parts.end(), grants[0][job] / parts.size());
      else
        policies::split(leaves[job], grants[0][job], parts);
      for (std::size_t n = 0; n < parts.size(); ++n) pending_[nodes_[job][n]] = parts[n];
    }
  }

  void apply() {
    for (std::size_t s = 0; s < pending_.size(); ++s) {
      buckets_[s].granted = pending_[s];
      buckets_[s].tokens = std::min(buckets_[s].tokens, pending_[s] * burst_steps / steps_per_s);
    }
  }

  demand_series const& series_;
  node_split how_;
  std::unique_ptr<policies::allocator> allocator_;
  std::vector<rate> promised_;  // per job
  std::vector<std::uint64_t> wanted_;
  std::vector<bucket> buckets_;
  std::vector<std::vector<std::size_t>> nodes_;  // streams of each job
  std::vector<rate> pending_;
  history past_;
};

double sum_between(std::vector<rate> const& row, std::size_t from, std::size_t to) {
  return static_cast<double>(std::accumulate(row.begin() + static_cast<std::ptrdiff_t>(from),
                                             row.begin() + static_cast<std::ptrdiff_t>(to),
                                             rate{0}));
}

/// Every return from at least a second of idleness that lasts at least a second.
std::vector<std::pair<std::size_t, std::size_t>> phases(std::vector<rate> const& wanted) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  std::size_t idle = 0;
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    if (wanted[step] == 0) {
      ++idle;
      continue;
    }
    std::size_t end = step;
    while (end < wanted.size() && wanted[end] > 0) ++end;
    if (idle >= steps_per_s && end - step >= steps_per_s) found.emplace_back(step, end);
    idle = 0;
    step = end - 1;
  }
  return found;
}

void measure_rises(history const& past, std::size_t job, outcome& out) {
  for (auto const& [begin, end] : phases(past.wanted[job])) {
    out.rises += 1;
    for (std::size_t at = begin; at + cycle_steps <= end; ++at) {
      double const ideal = sum_between(past.ideal[job], at, at + cycle_steps);
      if (sum_between(past.served[job], at, at + cycle_steps) < 0.95 * ideal) continue;
      out.rise_s.push_back(static_cast<double>(at - begin) / steps_per_s);
      break;
    }
    if (!out.first_rise.empty()) continue;
    for (std::size_t at = begin; at + 10 <= end; at += 10)
      out.first_rise.push_back(sum_between(past.served[job], at, at + 10) /
                               sum_between(past.ideal[job], at, at + 10));
  }
}

}  // namespace

outcome run_demand(demand_series const& series, std::string_view name, node_split how) {
  history const past = world(series, name, how).run();
  outcome out;
  double ideal_sum = 0, served_sum = 0;
  for (std::uint32_t step = 0; step < series.steps; ++step) {
    double ideal_step = 0, served_step = 0;
    for (std::uint32_t job = 0; job < series.jobs; ++job) {
      auto const ideal = static_cast<double>(past.ideal[job][step]);
      auto const served = static_cast<double>(past.served[job][step]);
      ideal_step += ideal;
      served_step += served;
      out.shortfall += std::max(0.0, ideal - served);
      out.unfair += std::max(0.0, served - ideal);
    }
    out.wasted += std::max(0.0, ideal_step - served_step);
    ideal_sum += ideal_step;
    served_sum += served_step;
  }
  for (double* part : {&out.shortfall, &out.wasted, &out.unfair}) *part /= ideal_sum;
  out.served = served_sum / (static_cast<double>(series.capacity) * 1000 *
                             (static_cast<double>(series.steps) / steps_per_s));
  for (std::uint32_t job = 0; job < series.jobs; ++job) {
    bool const piles_up =
        std::any_of(series.streams.begin(), series.streams.end(),
                    [&](demand_stream const& s) { return s.job == job && s.piles_up; });
    if (!piles_up) measure_rises(past, job, out);
  }
  std::sort(out.rise_s.begin(), out.rise_s.end());
  return out;
}

pair_outcome run_pairs(std::string_view name) {
  constexpr double ratios[4][2] = {{1, 0.1}, {0.1, 1}, {1, 1}, {0.5, 0.2}};
  constexpr double capacity = 1e8;
  constexpr unsigned warm_steps = 60 * cycle_steps, steps = 120 * cycle_steps;
  auto const allocator = policies::find_algorithm(name)->make();
  std::vector<policies::supply> supplies(2);
  for (policies::supply& s : supplies)
    s = {static_cast<rate>(capacity), std::vector<policies::claim>(4)};
  std::vector<std::vector<rate>> grants(2, std::vector<rate>(4, static_cast<rate>(capacity / 4)));
  double tokens[4][2] = {}, served[4][2] = {};
  pair_outcome out{std::vector<double>(4), {}};
  for (unsigned step = 0; step < steps; ++step) {
    for (unsigned j = 0; j < 4; ++j) {
      double units = 1e18;
      unsigned binding = 0;
      for (unsigned s = 0; s < 2; ++s) {
        auto const granted = static_cast<double>(grants[s][j]);
        tokens[j][s] =
            std::min(tokens[j][s] + granted / steps_per_s, granted * burst_steps / steps_per_s);
        if (tokens[j][s] / ratios[j][s] < units) {
          units = tokens[j][s] / ratios[j][s];
          binding = s;
        }
      }
      supplies[binding].claims[j].blocked = true;
      for (unsigned s = 0; s < 2; ++s) {
        tokens[j][s] -= units * ratios[j][s];
        served[j][s] += units * ratios[j][s];
        if (step >= warm_steps) out.used[s] += units * ratios[j][s];
      }
      if (step >= warm_steps) out.progress[j] += units;
    }
    if ((step + 1) % cycle_steps != 0) continue;
    for (unsigned j = 0; j < 4; ++j) {
      for (unsigned s = 0; s < 2; ++s) {
        supplies[s].claims[j].job = j + 1;
        supplies[s].claims[j].declared = static_cast<rate>(capacity / 4);
        supplies[s].claims[j].served = static_cast<rate>(served[j][s] * steps_per_s / cycle_steps);
        served[j][s] = 0;
      }
    }
    allocator->allocate(supplies, std::int64_t{step} * step_ns, grants);
    for (policies::supply& s : supplies)
      for (policies::claim& c : s.claims) c.blocked = false;
  }
  double const full = capacity * (steps - warm_steps) / steps_per_s;
  for (double& p : out.progress) p /= full;
  for (double& u : out.used) u /= full;
  return out;
}

}  // namespace sluice::sim
