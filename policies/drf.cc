// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness: jobs that need several resources in a fixed ratio get equal parts of
// the one each needs most, and of the others only what goes with it. The ratio is learnt from what
// was served in about a second. Ends as maxmin does: reservations are floors, what is left raises
// everybody. Wrong for a job whose uses of two resources have nothing to do with each other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

constexpr double learning_ns = 1e9;
constexpr double negligible = 1e-3;  // of the dominant resource: not needed
constexpr double infinite = std::numeric_limits<double>::infinity();

struct profile {
  std::vector<double> used;  // per supply, part of the capacity, mean of about a second
  bool is_new = true;
  std::uint64_t round = 0;  // seen last
};

/// A job while amounts are found. `need` is scaled to 1 for the dominant supply.
struct contender {
  std::vector<double> need;
  std::vector<claim const*> claims;  // per supply, null: none
  double weight = 1;
  double most = infinite;  // dominant share that satisfies it
  double share = 0;
  bool active = false;
};

class drf final : public allocator {
 public:
  void allocate(std::span<supply const> supplies, std::int64_t now_ns,
                std::vector<std::vector<rate>>& grants) override;

 private:
  void collect(std::span<supply const> supplies, std::int64_t now_ns);
  void bound(contender& job, std::span<supply const> supplies) const;
  void raise(std::size_t supplies);
  void finish(std::size_t index, rate capacity, std::vector<rate>& out);

  std::map<core::job_id, profile> profiles_;
  std::map<core::job_id, std::size_t> index_;
  std::vector<job_order> orders_;
  std::vector<std::span<claim const>> claims_;  // per supply, by job
  std::vector<contender> jobs_;
  std::vector<basin> basins_;
  std::vector<rate> probes_;
  std::vector<rate> amounts_;
  std::int64_t last_ns_ = 0;
  std::uint64_t round_ = 0;
};

double part(rate amount, rate capacity) {
  return static_cast<double>(amount) / static_cast<double>(std::max<rate>(capacity, 1));
}

void drf::collect(std::span<supply const> supplies, std::int64_t now_ns) {
  double const fresh = std::clamp(static_cast<double>(now_ns - last_ns_) / learning_ns, 0.01, 1.0);
  last_ns_ = now_ns;
  round_ += 1;
  index_.clear();
  jobs_.clear();
  claims_.clear();
  orders_.resize(supplies.size());
  for (std::size_t s = 0; s < supplies.size(); ++s) {
    claims_.push_back(orders_[s].sort(supplies[s].claims));
    for (claim const& c : claims_[s]) {
      auto const [row, is_new] = index_.try_emplace(c.job, jobs_.size());
      if (is_new)
        jobs_.push_back({.need = std::vector<double>(supplies.size()),
                         .claims = std::vector<claim const*>(supplies.size())});
      jobs_[row->second].claims[s] = &c;
      profile& p = profiles_[c.job];
      p.used.resize(supplies.size());
      p.used[s] += (part(c.served, supplies[s].capacity) - p.used[s]) * (p.is_new ? 1 : fresh);
      p.round = round_;
    }
  }
  std::erase_if(profiles_, [&](auto const& row) { return row.second.round != round_; });
  for (auto const& [job, at] : index_) {
    profile& p = profiles_[job];
    p.is_new = false;
    jobs_[at].need = p.used;
  }
}

/// Its needs relative to the largest, its weight, and the share beyond which it wants nothing.
void drf::bound(contender& job, std::span<supply const> supplies) const {
  double largest = *std::max_element(job.need.begin(), job.need.end());
  if (largest < 1e-9) {
    // Nothing learnt yet: what it waits for is what it needs.
    for (std::size_t s = 0; s < supplies.size(); ++s)
      job.need[s] = job.claims[s] && is_blocked(*job.claims[s]) ? 1 : 0;
    largest = 1;
  }
  bool blocked = false;
  double demand = 0, limit = infinite;
  for (std::size_t s = 0; s < supplies.size(); ++s) {
    claim const* const c = job.claims[s];
    double& need = job.need[s];
    need /= largest;
    if (c == nullptr || need < negligible) {
      need = 0;
      continue;
    }
    if (need == 1) job.weight = std::max<std::uint32_t>(c->weight, 1);
    blocked |= is_blocked(*c);
    demand = std::max(demand, part(with_headroom(c->served), supplies[s].capacity) / need);
    if (c->limit != unbounded) limit = std::min(limit, part(c->limit, supplies[s].capacity) / need);
  }
  job.most = std::min(limit, blocked ? infinite : demand);
  job.active = std::any_of(job.need.begin(), job.need.end(), [](double n) { return n > 0; });
}

/// Raises the dominant share of all by weight; who has enough, or needs a supply that is used up,
/// stops.
void drf::raise(std::size_t supplies) {
  std::vector<contender*> by_end;
  for (contender& job : jobs_)
    if (job.active) by_end.push_back(&job);
  std::stable_sort(by_end.begin(), by_end.end(), [](contender const* a, contender const* b) {
    return a->most / a->weight < b->most / b->weight;
  });
  std::vector<double> stopped(supplies), rising(supplies);
  std::vector<bool> full(supplies);
  for (contender const* job : by_end)
    for (std::size_t s = 0; s < supplies; ++s) rising[s] += job->weight * job->need[s];
  auto const stop = [&](contender& job, double level) {
    job.active = false;
    job.share = job.weight * level;
    for (std::size_t s = 0; s < supplies; ++s) {
      stopped[s] += job.share * job.need[s];
      rising[s] -= job.weight * job.need[s];
    }
  };
  for (auto next = by_end.begin(); next != by_end.end();) {
    contender& least = **next;
    if (!least.active) {
      ++next;
      continue;
    }
    double level = infinite;
    std::size_t first = 0;
    for (std::size_t s = 0; s < supplies; ++s) {
      if (full[s] || rising[s] <= 1e-12) continue;
      double const end = std::max(0.0, 1 - stopped[s]) / rising[s];
      if (end < level) {
        level = end;
        first = s;
      }
    }
    double const enough = least.most / least.weight;
    if (enough <= level) {
      stop(least, enough == infinite ? 0 : enough);
      ++next;
      continue;
    }
    full[first] = true;
    for (contender* job : by_end)
      if (job->active && job->need[first] > 0) stop(*job, level);
  }
}

void drf::finish(std::size_t index, rate capacity, std::vector<rate>& out) {
  auto const claims = claims_[index];
  amounts_.assign(claims.size(), 0);
  fill_probes(claims, capacity, basins_, probes_);
  basins_.clear();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    contender const& job = jobs_[index_[claims[i].job]];
    double const fair = job.share * job.need[index] * static_cast<double>(capacity);
    rate const low =
        std::min(std::max(claims[i].reservation, probes_[i]), wanted(claims[i], probes_[i]));
    rate const high = std::min(static_cast<rate>(std::clamp(fair, 0.0, 9e18)), claims[i].limit);
    basins_.push_back({low, std::max(low, high), claims[i].weight});
  }
  water_fill(basins_, capacity, amounts_);
  // First to those who want it, then to all.
  basins_.clear();
  for (std::size_t i = 0; i < claims.size(); ++i)
    basins_.push_back(
        {amounts_[i], std::max(amounts_[i], wanted(claims[i], probes_[i])), claims[i].weight});
  water_fill(basins_, capacity, amounts_);
  give_leftovers(claims, capacity, basins_, amounts_);
  orders_[index].restore(amounts_, out);
}

void drf::allocate(std::span<supply const> supplies, std::int64_t now_ns,
                   std::vector<std::vector<rate>>& grants) {
  collect(supplies, now_ns);
  for (contender& job : jobs_) bound(job, supplies);
  raise(supplies.size());
  grants.resize(supplies.size());
  for (std::size_t s = 0; s < supplies.size(); ++s) finish(s, supplies[s].capacity, grants[s]);
}

}  // namespace

std::unique_ptr<allocator> make_drf() { return std::make_unique<drf>(); }

}  // namespace sluice::policies
