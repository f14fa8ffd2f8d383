// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/simulate/fluid.h"

#include <algorithm>
#include <cmath>

namespace sluice::simulation {

namespace {

constexpr double unlimited = 1e300;
constexpr double fine_s = 2;      // after a change every cycle counts
constexpr double coarse_s = 1;    // then one a second
constexpr double settled_s = 11;  // longer than any algorithm remembers
constexpr double most_shown = 1e18;
constexpr double crumb = 1e-6;  // of an operation or byte: rounding, not work
constexpr std::uint32_t some_waiters = 16;

struct queue {
  bool used = false;
  double arriving = 0;  // per second
  double grant = 0;
  double limit = unlimited;
  double backlog = 0;
  double since_done = 0;  // since the last decision
  bool blocked = false;   // somebody waited since
  double offered_sum = 0, done_sum = 0;
  std::size_t oldest = 0;    // interval of the operation that is served next
  double before_oldest = 0;  // offered before that interval
};

class world {
 public:
  world(load const& l, cluster::policy_table const& p)
      : load_(l),
        plan_(p),
        allocator_(policies::find_algorithm(p.algorithm)->make()),
        cycle_s_(std::max(static_cast<double>(p.cycle_ns) / 1e9, 1e-3)),
        width_(p.supplies.size()),
        live_(l.jobs.size()),
        queues_(l.jobs.size() * width_),
        cells_(queues_.size()),
        claims_(width_),
        claimants_(width_) {
    past_.jobs.resize(l.jobs.size());
    past_.supplies.resize(width_);
    for (std::size_t s = 0; s < width_; ++s)
      past_.supplies[s].capacity = static_cast<double>(p.supplies[s].capacity) / 1000;
    for (std::size_t j = 0; j < l.jobs.size(); ++j) {
      past_.jobs[j].by_supply.resize(width_);
      past_.jobs[j].started_s = static_cast<double>(l.jobs[j].first) * l.interval_s;
      for (std::size_t s = 0; s < width_; ++s) prepare(j, s);
    }
  }

  past run(std::size_t most_intervals) {
    for (interval_ = 0; interval_ < most_intervals; ++interval_) {
      if (interval_ >= load_.intervals && !anybody_lives()) break;
      begin_interval();
      pass_interval();
      end_interval();
    }
    past_.intervals = interval_;
    return std::move(past_);
  }

 private:
  queue& at(std::size_t job, std::size_t supply) { return queues_[job * width_ + supply]; }

  void prepare(std::size_t job, std::size_t supply) {
    queue& q = at(job, supply);
    q.used = !load_.jobs[job].offered[supply].empty();
    q.limit = std::min(unlimited, terms_of(job, supply).limit == policies::unbounded
                                      ? unlimited
                                      : static_cast<double>(terms_of(job, supply).limit) / 1000);
    if (!plan_.enforce) q.grant = unlimited;
  }

  cluster::terms const& terms_of(std::size_t job, std::size_t supply) const {
    return plan_.classes[load_.jobs[job].row].by_supply[supply];
  }

  bool anybody_lives() const { return std::find(live_.begin(), live_.end(), 1) != live_.end(); }

  void begin_interval() {
    bool changed = false;
    for (supply_past& s : past_.supplies) s.by_interval.emplace_back();
    for (std::size_t j = 0; j < live_.size(); ++j) {
      job_load const& job = load_.jobs[j];
      if (interval_ == job.first) live_[j] = 1;
      for (std::size_t s = 0; s < width_; ++s) {
        queue& q = at(j, s);
        if (!q.used) continue;
        double const amount = interval_ < load_.intervals ? job.offered[s][interval_] : 0;
        double const rate = amount / load_.interval_s;
        changed |= rate != q.arriving;
        q.arriving = rate;
        cells_[j * width_ + s] = {};
        cells_[j * width_ + s].offered = amount;
      }
    }
    if (changed) stir();
  }

  void stir() {
    fine_left_s_ = fine_s;
    still_s_ = 0;
  }

  void pass_interval() {
    double left_s = load_.interval_s;
    while (left_s > 0) {
      double step_s = next_step();
      // Not a hair's breadth of an interval by itself.
      if (step_s > left_s - cycle_s_ * 1e-6) step_s = left_s;
      left_s -= step_s;
      flow(step_s);
      now_s_ = static_cast<double>(interval_) * load_.interval_s + load_.interval_s - left_s;
      if (since_s_ >= cycle_s_ * 0.999) decide();
    }
  }

  double next_step() const {
    double const rest_s = std::max(cycle_s_ - since_s_, cycle_s_ * 1e-3);
    if (fine_left_s_ > 0) return rest_s;
    double const most_s = still_s_ >= settled_s ? 1e18 : std::max(coarse_s, cycle_s_) - since_s_;
    return std::max(rest_s, std::min(most_s, next_drained()));
  }

  /// Until the first queue is empty.
  double next_drained() const {
    double first_s = 1e18;
    for (queue const& q : queues_)
      if (q.backlog > 0 && q.grant > q.arriving)
        first_s = std::min(first_s, q.backlog / (q.grant - q.arriving));
    return first_s;
  }

  void flow(double step_s) {
    for (std::size_t s = 0; s < width_; ++s) {
      double used = 0;
      bool queued = false;
      double waited_s = 0;
      for (std::size_t j = 0; j < live_.size(); ++j) {
        queue& q = at(j, s);
        if (!live_[j] || !q.used) continue;
        cell& c = cells_[j * width_ + s];
        double const before = c.done, blocked_s = c.blocked_s;
        bool const waits = serve(q, c, step_s);
        if (q.backlog > 0) c.lag_s = std::max(c.lag_s, lag(q, load_.jobs[j].offered[s], step_s));
        used += c.done - before;
        waited_s = std::max(waited_s, c.blocked_s - blocked_s);
        queued |= waits && q.grant < q.limit * 0.999;
      }
      account(past_.supplies[s], used, queued, step_s);
      supply_cell& sum = past_.supplies[s].by_interval.back();
      sum.blocked_s += waited_s;
      sum.unused += std::max(0.0, past_.supplies[s].capacity * waited_s - used);
    }
    since_s_ += step_s;
    fine_left_s_ -= step_s;
  }

  /// True when something waited.
  static bool serve(queue& q, cell& c, double step_s) {
    double const in = q.arriving * step_s;
    double out = std::min(q.backlog + in, q.grant * step_s);
    double const waited_s = waiting_time(q, step_s);
    double const before = q.backlog;
    q.backlog += in - out;
    if (q.backlog < crumb) {
      out += q.backlog;
      q.backlog = 0;
    }
    q.since_done += out;
    q.blocked |= waited_s > 0;
    q.offered_sum += in;
    q.done_sum += out;
    c.done += out;
    c.blocked_s += waited_s;
    c.waiting += (before + q.backlog) / 2 * waited_s;
    c.delayed += q.arriving * waited_s;
    c.grant += std::min(q.grant, most_shown) * step_s;
    return waited_s > 0;
  }

  static double waiting_time(queue const& q, double step_s) {
    if (q.backlog <= 0) return q.arriving > q.grant ? step_s : 0;
    if (q.grant <= q.arriving) return step_s;
    return std::min(step_s, q.backlog / (q.grant - q.arriving));
  }

  /// Age of what is served next: it came when `done_sum` had been offered.
  double lag(queue& q, std::vector<double> const& offered, double step_s) const {
    while (q.oldest + 1 < offered.size() && q.before_oldest + offered[q.oldest] <= q.done_sum)
      q.before_oldest += offered[q.oldest++];
    double const within =
        offered[q.oldest] > 0 ? (q.done_sum - q.before_oldest) / offered[q.oldest] : 1;
    double const came_s =
        (static_cast<double>(q.oldest) + std::clamp(within, 0.0, 1.0)) * load_.interval_s;
    return std::max(0.0, now_s_ + step_s - came_s);
  }

  static void account(supply_past& p, double used, bool queued, double step_s) {
    double const could = p.capacity * step_s;
    p.done += used;
    if (used >= could * 0.99) p.busy_s += step_s;
    if (used > could * 1.000001) p.over_s += step_s;
    if (!queued) return;
    p.queued_s += step_s;
    p.wasted += std::max(0.0, could - used);
  }

  void decide() {
    bool const someone_left = dismiss();
    if (plan_.enforce) {
      make_claims();
      allocator_->allocate(claims_, std::llround(now_s_ * 1e9), grants_);
      ++past_.decisions;
      if (take_grants() || someone_left)
        stir();
      else
        still_s_ += since_s_;
    }
    since_s_ = 0;
    for (queue& q : queues_) {
      q.since_done = 0;
      q.blocked = q.backlog > 0;
    }
  }

  /// Jobs whose last operation is done are gone.
  bool dismiss() {
    bool someone = false;
    for (std::size_t j = 0; j < live_.size(); ++j) {
      bool const over = static_cast<double>(load_.jobs[j].end) * load_.interval_s <= now_s_ + 1e-9;
      if (!live_[j] || !over) continue;
      bool waits = false;
      for (std::size_t s = 0; s < width_; ++s) waits |= at(j, s).backlog > 0;
      if (waits) continue;
      live_[j] = 0;
      past_.jobs[j].finished = someone = true;
      past_.jobs[j].ended_s = now_s_;
    }
    return someone;
  }

  void make_claims() {
    grants_.resize(width_);
    for (std::size_t s = 0; s < width_; ++s) {
      claims_[s].capacity = plan_.supplies[s].capacity;
      claims_[s].claims.clear();
      claimants_[s].clear();
      for (std::size_t j = 0; j < live_.size(); ++j) {
        queue const& q = at(j, s);
        if (!live_[j] || !q.used) continue;
        cluster::terms const& t = terms_of(j, s);
        auto const reserved = std::min(t.reservation, t.limit);
        claims_[s].claims.push_back({.job = j + 1,
                                     .weight = t.weight,
                                     .reservation = reserved,
                                     .limit = t.limit,
                                     .declared = reserved,
                                     .priority = t.priority,
                                     .served = milli(q.since_done / since_s_),
                                     .waiting = milli(q.backlog),
                                     .waiters = q.backlog > 0 ? some_waiters : 0,
                                     .blocked = q.blocked});
        claimants_[s].push_back(j);
      }
    }
  }

  static policies::rate milli(double amount) {
    return static_cast<policies::rate>(std::min(amount * 1000 + 0.5, 1e17));
  }

  /// True when they are clearly others.
  bool take_grants() {
    bool changed = false;
    for (std::size_t s = 0; s < width_; ++s)
      for (std::size_t i = 0; i < claimants_[s].size(); ++i) {
        queue& q = at(claimants_[s][i], s);
        double const grant = static_cast<double>(grants_[s][i]) / 1000;
        changed |= std::abs(grant - q.grant) > 1e-6 * std::max(grant, q.grant) + 0.01;
        q.grant = grant;
      }
    return changed;
  }

  void end_interval() {
    for (std::size_t j = 0; j < live_.size(); ++j)
      for (std::size_t s = 0; s < width_; ++s) {
        queue const& q = at(j, s);
        if (!q.used) continue;
        cell& c = cells_[j * width_ + s];
        c.backlog = q.backlog;
        c.grant /= load_.interval_s;
        c.waiting /= load_.interval_s;
        past_.jobs[j].by_supply[s].push_back(c);
      }
  }

  load const& load_;
  cluster::policy_table const& plan_;
  std::unique_ptr<policies::allocator> allocator_;
  double cycle_s_;
  std::size_t width_;
  std::size_t interval_ = 0;
  double now_s_ = 0;
  double since_s_ = 0;      // the last decision
  double fine_left_s_ = 0;  // of close looks after a change
  double still_s_ = 0;      // since the grants changed
  std::vector<char> live_;
  std::vector<queue> queues_;  // [job * width + supply]
  std::vector<cell> cells_;    // of this interval
  std::vector<policies::supply> claims_;
  std::vector<std::vector<std::size_t>> claimants_;
  std::vector<std::vector<policies::rate>> grants_;
  past past_;
};

}  // namespace

past simulate(load const& l, cluster::policy_table const& p, std::size_t most_intervals) {
  return world(l, p).run(most_intervals);
}

}  // namespace sluice::simulation
