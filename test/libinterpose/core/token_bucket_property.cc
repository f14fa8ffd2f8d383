// SPDX-License-Identifier: Apache-2.0
// The promises of the token bucket over random histories: threads that idle, take, wait to the
// nanosecond, are woken, killed and refunded, while a writer changes the curve; checked against an
// integral of the rate in 128 bits. Each rule of the bucket is also switched off: the check must
// notice. SEED=n in the environment repeats a run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <climits>
#include <cmath>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "bucket_random.h"
#include "libinterpose/core/token_bucket.h"

using namespace sluice::core;
using namespace bucket_test;

namespace {

double uniform(random_source& r, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(r);
}

double log_uniform(random_source& r, double low, double high) {
  return std::exp(uniform(r, std::log(low), std::log(high)));
}

// The exact integral of the rate since the start, in 2^-40 units, modulo 2^128: three rates, each
// from its own time on, added up span by span.
struct integral {
  u128 sum = 0;
  std::int64_t from_ns[4] = {0, INT64_MAX, INT64_MAX, INT64_MAX};
  std::uint64_t rate[3] = {};

  u128 at(std::int64_t now_ns) const {
    u128 all = sum;
    for (int i = 0; i < 3; ++i) {
      std::int64_t const end_ns = std::min(now_ns, from_ns[i + 1]);
      if (end_ns > from_ns[i]) all += u128(end_ns - from_ns[i]) * rate[i];
    }
    return all;
  }
  std::uint64_t units(std::int64_t now_ns) const { return std::uint64_t(at(now_ns) >> 40); }
  std::uint64_t rate_at(std::int64_t now_ns) const {
    int i = 0;
    while (i < 2 && now_ns >= from_ns[i + 1]) ++i;
    return rate[i];
  }
  // A pause: nothing is paid now, nor within the time a ticket may go ahead of its rate.
  bool stands(std::int64_t now_ns, std::int64_t ahead_ns) const {
    return rate_at(now_ns) == 0 && rate_at(now_ns + ahead_ns) == 0;
  }
  std::uint64_t fastest() const { return *std::max_element(rate, rate + 3); }
  void change(std::int64_t now_ns, curve_settings const& s) {
    sum = at(now_ns);
    bool const ends = s.lease_end_ns != 0 && s.after_lease == 0;
    rate[0] = s.rate_q40;
    rate[1] = s.after_rate_q40;
    rate[2] = s.own_rate_q40;
    from_ns[0] = now_ns;
    from_ns[1] = ends ? std::max(now_ns, s.lease_end_ns) : INT64_MAX;
    from_ns[2] = ends && s.own_at_ns != 0 ? std::max(from_ns[1], s.own_at_ns) : INT64_MAX;
  }
};

// A lease that ends, the share between, and mostly an own share after that.
curve_settings with_end(curve_settings s, random_source& r, std::int64_t now_ns, double scale_ns) {
  auto const rate = [&] {
    double const factor = log_uniform(r, 0.02, 50);
    return uniform(r, 0, 1) < 0.3 ? 0 : std::uint64_t(double(s.rate_q40) / 50 * factor);
  };
  s.lease_end_ns = now_ns + std::int64_t(log_uniform(r, 1, scale_ns)) - (uniform(r, 0, 1) < 0.05);
  if (s.lease_end_ns == 0) s.lease_end_ns = 1;
  s.after_rate_q40 = rate();
  if (uniform(r, 0, 1) < 0.8) s.own_at_ns = s.lease_end_ns + std::int64_t(uniform(r, -5, scale_ns));
  s.own_rate_q40 = rate();
  return s;
}

struct scenario {
  double units_per_second;
  double cap_units;
  double most_cost;
  int threads = 4;
  int steps = 20'000;
  double debt_ns = 0;
  double busy = 0.5;        // share of takes without a pause before them
  double change_share = 0;  // of steps: the writer moves
  double end_share = 0;     // of curves: its lease ends by itself
  double refund_share = 0;  // of passes: part is given back
  double kill_share = 0;    // of waits: the waiter never returns
  bool leases = false;
  bool lulls = false;  // now and then all threads idle together
  std::uint64_t origin = 0;
};

struct outcome {
  double worst = 0;           // over all windows: admitted / bound
  std::int64_t disorder = 0;  // passes before an earlier ticket
  std::int64_t early = 0;     // passes before the curve reached the ticket, or in a pause
  std::int64_t late = 0;      // passes later than that
  std::int64_t passes = 0;
};

// Virtual threads on one bucket. Events at the same nanosecond run in ticket order.
template <rules R>
class world {
 public:
  world(scenario const& s, random_source& r) : s_(s), random_(r) {
    curve_settings set = settings(q40(s.units_per_second));
    init(b_, set, 0, s.origin);
    paid_.change(0, set);
    bound_cap_ = double(set.cap_units);
    bound_debt_ = double(units_in(set.rate_q40, set.debt_ns));
    threads_.resize(s.threads);
    for (int i = 0; i < s.threads; ++i) schedule(i, pause());
  }

  outcome run() {
    for (int i = 0; i < s_.steps && !queue_.empty(); ++i) {
      event e = queue_.top();
      queue_.pop();
      if (threads_[e.who].version != e.version) continue;
      now_ = e.at;
      if (!threads_[e.who].waiting && now_ < lull_end_) {
        schedule(e.who, lull_end_ - now_);
        continue;
      }
      step(e.who);
      if (s_.lulls) lull();
      if (uniform(random_, 0, 1) < s_.change_share) change_curve();
    }
    return out_;
  }

 private:
  struct event {
    std::int64_t at;
    std::uint64_t place;
    int who;
    std::uint32_t version;
    bool operator<(event const& o) const { return at != o.at ? at > o.at : place > o.place; }
  };
  struct actor {
    ticket t{};
    lease l{};
    bool waiting = false;
    std::uint32_t mask = 0;
    std::int64_t since = 0;
    std::uint32_t version = 0;
  };

  curve_settings settings(std::uint64_t rate) const {
    return {rate, std::uint64_t(s_.cap_units), std::int64_t(s_.debt_ns), default_quantum_ns, 0, 0};
  }

  std::int64_t pause() {
    if (uniform(random_, 0, 1) < s_.busy) return 0;
    double const full_ns = s_.cap_units / s_.units_per_second * 1e9;
    return std::int64_t(log_uniform(random_, full_ns / 1000 + 1, full_ns * 4 + 2));
  }

  // After a short spell credit is cached and leases are full; a later long spell spends it all.
  void lull() {
    if (--until_lull_ > 0) return;
    until_lull_ = int(log_uniform(random_, s_.threads, 3000));
    lull_end_ = now_ + std::int64_t(s_.cap_units / s_.units_per_second * 1e9 * 3) + 1;
  }

  std::uint64_t place(int who) const {
    return threads_[who].waiting ? threads_[who].t.start - s_.origin : ~std::uint64_t{0};
  }

  void schedule(int who, std::int64_t delay_ns) {
    queue_.push({now_ + delay_ns, place(who), who, ++threads_[who].version});
  }

  std::uint64_t reach(std::int64_t at) const {
    return s_.origin + paid_.units(at + std::int64_t(s_.debt_ns)) + b_.returned.load();
  }

  bool stands(std::int64_t at) const { return paid_.stands(at, std::int64_t(s_.debt_ns)); }

  void step(int who) {
    actor& a = threads_[who];
    if (!a.waiting) {
      double const least = s_.lulls ? s_.most_cost / 2 : 1;
      std::uint64_t const cost = std::uint64_t(log_uniform(random_, least, s_.most_cost)) + 1;
      a.since = now_;
      std::uint64_t const before = a.l.tokens;
      bool passed;
      if (s_.leases) {
        passed = take_leased(b_, a.l, cost, std::uint32_t(s_.threads), a.t);
        if (passed && (a.l.tokens > before || a.l.tokens == before - cost)) a.t = {0, cost, false};
      } else {
        passed = book<R>(b_, cost, a.t);
      }
      if (passed) return pass(who, true);
    }
    decision d = decide<R>(b_, a.t, now_, 0);
    if (d.what == decision::again) d = decide<R>(b_, a.t, now_, 0);
    if (d.what == decision::pass) return pass(who, false);
    a.waiting = true;
    a.mask = d.mask;
    if (uniform(random_, 0, 1) < s_.kill_share) {
      ++a.version;
      a.waiting = false;
      return schedule(who, pause());  // a newborn takes the place of the dead
    }
    schedule(who, std::max<std::int64_t>(d.deadline_ns - now_, 1));
  }

  void pass(int who, bool fast) {
    actor& a = threads_[who];
    bool const leased = fast && s_.leases;
    // The end of a lease asks nobody: what was cached before it may still be spent.
    bool const cached = fast && now_ >= paid_.from_ns[1];
    if (stands(now_) && !cached) ++out_.early;
    if (!leased) {
      if (distance(reach(now_), fast ? a.t.start + a.t.cost : a.t.start) < 0) ++out_.early;
      if (a.waiting && now_ > last_change_ + 1 && now_ > a.since + 1 && !stands(now_ - 2) &&
          distance(reach(now_ - 2), a.t.start) >= 0)
        ++out_.late;
      if (now_ > last_time_ && distance(a.t.start, last_place_) < 0 && out_.passes != 0)
        ++out_.disorder;
      if (now_ > last_time_ || distance(a.t.start, last_place_) > 0) last_place_ = a.t.start;
      last_time_ = now_;
    }
    ++out_.passes;
    a.waiting = false;
    admit(double(a.t.cost));
    if (uniform(random_, 0, 1) < s_.refund_share) {
      std::uint64_t const back = std::uint64_t(double(a.t.cost) * uniform(random_, 0, 1));
      admitted_ -= double(back);
      if (refund(b_, back, now_)) wake(~0u);
    }
    schedule(who, pause());
  }

  // The worst window that ends here: all earlier starts at once, as a running minimum.
  void admit(double cost) {
    double const paid = double(paid_.at(now_) >> 40);
    low_ = std::min(low_, admitted_ - paid);
    admitted_ += cost;
    double const excess = admitted_ - paid - low_;
    out_.worst = std::max(out_.worst, excess / (bound_cap_ + bound_debt_ + s_.most_cost + 3));
  }

  void wake(std::uint32_t mask) {
    for (int i = 0; i < s_.threads; ++i)
      if (threads_[i].waiting && (threads_[i].mask & mask)) schedule(i, 0);
  }

  void change_curve() {
    double const choice = uniform(random_, 0, 1);
    double factor = log_uniform(random_, 0.02, 50);
    if (choice < 0.2 && paid_.rate[0] != 0) factor = 0;
    curve_settings set = settings(q40(s_.units_per_second * factor));
    if (uniform(random_, 0, 1) < s_.end_share)
      set = with_end(set, random_, now_, s_.cap_units / s_.units_per_second * 1e9 * 4 + 2);
    std::uint32_t const mask = set_curve(b_, set, now_);
    paid_.change(now_, set);
    bound_debt_ = std::max(bound_debt_, double(units_in(paid_.fastest(), set.debt_ns)));
    last_change_ = now_;
    wake(mask);
  }

  scenario s_;
  random_source& random_;
  std::unique_ptr<bucket> memory_ = std::make_unique<bucket>();
  bucket& b_ = *memory_;
  integral paid_;
  std::vector<actor> threads_;
  std::priority_queue<event> queue_;
  std::int64_t now_ = 0;
  std::int64_t lull_end_ = 0;
  int until_lull_ = 1;
  std::int64_t last_change_ = -10;
  std::int64_t last_time_ = -1;
  std::uint64_t last_place_ = 0;
  double admitted_ = 0;
  double low_ = 0;
  double bound_cap_ = 0;
  double bound_debt_ = 0;
  outcome out_;
};

scenario random_scenario(random_source& r) {
  scenario s{};
  s.units_per_second = log_uniform(r, 1, 1e9) * (uniform(r, 0, 1) < 0.5 ? 1 : op_units);
  double const cap_ns = log_uniform(r, 1e4, 3e8);
  s.cap_units = std::max(8.0, s.units_per_second * cap_ns / 1e9);
  s.most_cost = std::max(2.0, s.cap_units * log_uniform(r, 0.001, 1.0));
  s.threads = int(uniform(r, 1, 12));
  s.busy = uniform(r, 0, 1);
  s.origin = uniform(r, 0, 1) < 0.5 ? 0 : r();
  if (uniform(r, 0, 1) < 0.2) s.origin = 0 - std::uint64_t(s.cap_units * 3);
  return s;
}

// The worst window over many scenarios, up to the first that breaks the bound.
template <rules R>
double worst_of(int rounds, bool leases) {
  random_source r(seed());
  double worst = 0;
  for (int i = 0; i < rounds && worst <= 1; ++i) {
    scenario s = random_scenario(r);
    s.leases = leases;
    s.steps = 10'000;
    if (leases && i % 4 == 0) s.most_cost = std::max(2.0, s.cap_units / 1000);
    if (leases && i % 4 != 0) {
      s.lulls = true;
      s.busy = 1;
      s.threads = 1 + i % 4;
      s.most_cost = std::max(2.0, s.cap_units / s.threads / log_uniform(r, 10, 60));
    }
    worst = std::max(worst, world<R>(s, r).run().worst);
  }
  return worst;
}

}  // namespace

TEST_CASE("the curve is the exact integral of the rate", "[bucket][property]") {
  INFO("SEED=" << seed());
  random_source r(seed());
  auto memory = std::make_unique<bucket>();
  for (int round = 0; round < 300; ++round) {
    std::uint64_t const origin = r();
    integral exact;
    curve_settings set = default_settings(q40(log_uniform(r, 0.01, 1e9) * op_units), 1);
    init(*memory, set, 0, origin);
    exact.change(0, set);
    std::int64_t now = 0;
    for (int i = 0; i < 1000; ++i) {
      now += std::int64_t(log_uniform(r, 1, 1e6)) * (i % 100 == 0 ? 1'000'000'000 : 1);
      curve c;
      REQUIRE(read_curve(*memory, c));
      if (c.at(now) - origin != exact.units(now)) FAIL("round " << round << " step " << i);
      if (i % 3 != 0) continue;
      set = default_settings(i % 5 == 0 ? 0 : q40(log_uniform(r, 1e-2, 1e9) * op_units), 1);
      if (i % 2 == 0) set = with_end(set, r, now, 3e6);
      set_curve(*memory, set, now);
      exact.change(now, set);
    }
  }
}

TEST_CASE("no window admits more than the rate, the cap and one request", "[bucket][property]") {
  INFO("SEED=" << seed());
  CHECK(worst_of<rules{}>(150, false) <= 1);
}

TEST_CASE("leases stay within the same bound", "[bucket][property]") {
  INFO("SEED=" << seed());
  CHECK(worst_of<rules{}>(100, true) <= 1);
}

TEST_CASE("every rule is needed for the bound", "[bucket][property]") {
  INFO("SEED=" << seed());
  CHECK(worst_of<rules{.end_on_fast_path = false}>(150, false) > 1);
  CHECK(worst_of<rules{.rebook_own_cost = false}>(150, false) > 1);
  CHECK(worst_of<rules{.floor_leaves_cache = false}>(150, false) > 1);
  CHECK(worst_of<rules{.known_near_booked = false}>(150, false) > 1);
  CHECK(worst_of<rules{.floor_leaves_leases = false}>(100, true) > 1);
}

TEST_CASE("tickets pass in order, at the first possible nanosecond", "[bucket][property]") {
  INFO("SEED=" << seed());
  random_source r(seed());
  bool const changes = GENERATE(false, true);
  bool const ends = GENERATE(false, true);
  for (int i = 0; i < 100; ++i) {
    scenario s = random_scenario(r);
    s.change_share = changes || ends ? 0.02 : 0;
    s.end_share = ends ? (changes ? 0.5 : 1) : 0;
    s.kill_share = i % 4 == 0 ? 0.01 : 0;
    s.busy = i % 2 ? 1 : s.busy;
    s.steps = 5000;
    outcome o = world<rules{}>(s, r).run();
    INFO("scenario " << i);
    CHECK(o.passes > 20);  // some spend nearly all their steps in a pause
    CHECK(o.worst <= 1);
    CHECK(o.disorder == 0);
    CHECK(o.early == 0);
    CHECK(o.late == 0);
  }
}

namespace {

// Passes in a pause, or late after it, over many scenarios with pauses.
template <rules R>
outcome paused(bool leases) {
  random_source r(seed());
  outcome sum;
  for (int i = 0; i < 60; ++i) {
    scenario s = random_scenario(r);
    s.leases = leases;
    s.change_share = 0.05;
    s.end_share = i % 2 ? 0.5 : 0;
    s.steps = 5000;
    outcome const o = world<R>(s, r).run();
    sum.worst = std::max(sum.worst, o.worst);
    sum.early += o.early;
    sum.late += o.late;
    sum.passes += o.passes;
  }
  return sum;
}

}  // namespace

TEST_CASE("a pause passes nothing, and its end passes what is due at once", "[bucket][property]") {
  INFO("SEED=" << seed());
  outcome const o = paused<rules{}>(false);
  CHECK(o.early == 0);
  CHECK(o.late == 0);
  CHECK(o.passes > 10'000);
  CHECK(paused<rules{}>(true).early == 0);
  CHECK(paused<rules{.stands_at_zero = false}>(false).early > 0);
}

TEST_CASE("refunds and the debt allowance keep the bound", "[bucket][property]") {
  INFO("SEED=" << seed());
  random_source r(seed());
  for (int i = 0; i < 100; ++i) {
    scenario s = random_scenario(r);
    s.refund_share = 0.3;
    s.debt_ns = i % 2 ? default_debt_ns : 0;
    s.change_share = i % 3 ? 0 : 0.01;
    s.end_share = i % 2 ? 0.5 : 0;
    s.steps = 5000;
    outcome o = world<rules{}>(s, r).run();
    INFO("scenario " << i);
    CHECK(o.worst <= 1);
    CHECK(o.early == 0);
  }
}
