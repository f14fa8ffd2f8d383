// SPDX-License-Identifier: Apache-2.0
// The controls of background work: their rules on random figures, and each of them around a model
// of a store whose flushes and compactions share a device with its clients, in simulated time.
#include "policies/tail_latency.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace sluice::policies;

namespace {

constexpr double mib = 1 << 20;
constexpr std::int64_t ms = 1'000'000;
constexpr rate per_s(double bytes) { return static_cast<rate>(bytes * 1000); }
constexpr double bytes_of(rate r) { return static_cast<double>(r) / 1000; }
constexpr unsigned at_flush = index_of(background::flush), at_low = index_of(background::low),
                   at_high = index_of(background::high);

tail_terms terms(tail_algorithm how = tail_algorithm::guarded) {
  return {how, per_s(60 * mib), per_s(30 * mib), per_s(3 * mib)};
}

/// The same figures for a while, looked at every 20 ms.
struct watched {
  explicit watched(tail_terms const& t) { by.use(t); }
  tail_latency by;
  std::int64_t now_ns = 1;

  void run(tail_look const& l, double seconds) {
    for (double s = 0; s < seconds; s += 0.02) by.look(l, now_ns += 20 * ms);
  }
  /// Seconds until the sign is this one; more than `most`: never.
  double until(tail_look const& l, tail_sign s, double most) {
    double took = 0;
    while (took <= most && by.sign() != s) {
      by.look(l, now_ns += 20 * ms);
      took += 0.02;
    }
    return took;
  }
};

tail_look looks(double foreground, double f = 0, double l = 0, double h = 0) {
  tail_look out;
  out.foreground = per_s(foreground * mib);
  out.moved = {per_s(f * mib), per_s(l * mib), per_s(h * mib)};
  return out;
}

tail_look held(tail_look l, std::vector<unsigned> which) {
  for (unsigned const i : which) l.waits[i] = true;
  return l;
}

bool is_free(background_rates const& r) {
  return std::all_of(r.begin(), r.end(), [](rate x) { return x == unbounded; });
}

/// A store like RocksDB on one device, by flows of bytes. What is on the device is served by the
/// number of requests that each part has there, as a device without a scheduler does.
class store {
 public:
  static constexpr double device = 60 * mib, step_s = 0.005;
  static constexpr double memtable = 16 * mib, level_1 = 64 * mib;
  static constexpr double value = 1024, block = 4096;
  static constexpr double slow_files = 20, stop_files = 36;
  enum class load { closed, bursty, steady };

  /// The steady load meets a level 0 that is nearly full.
  explicit store(load how) : how_(how), level0_(how == load::steady ? 34 * memtable : 0) {}

  /// Milliseconds of a request, mean of each second; and requests that were done.
  std::vector<double> latency_ms;
  double done = 0, debt() const { return level0_ + above_; }
  double files() const { return level0_ / memtable; }

  /// One step under these limits; what a control sees of it.
  tail_look run(background_rates const& limits, double now_s);

 private:
  double wanted_ops(double now_s) const {
    if (how_ == load::closed) return 1e9;
    if (how_ == load::steady) return 9000;
    return std::fmod(now_s, 20) < 15 ? 3000 : 750;
  }

  load how_;
  double level0_, unflushed_ = 0, above_ = 400 * mib;
  bool compacts_ = false;
  double second_s_ = 0, sum_ms_ = 0;
  unsigned steps_ = 0;
};

tail_look store::run(background_rates const& limits, double now_s) {
  constexpr double clients = 4, requests_of[] = {1, 1, 2}, large = 8;  // a large one is many small
  // Each file of level 0 has to be looked at; a store that has too many lets writes wait.
  double const op_bytes = 0.5 * block * (1 + 0.25 * files());
  bool const is_stopped = files() >= stop_files || unflushed_ >= 3 * memtable;
  double const slowed = files() >= slow_files ? 0.1 : 1;
  compacts_ = compacts_ ? files() >= 0.5 : files() >= 4;
  double wants[3] = {unflushed_ >= memtable || (unflushed_ > 0 && is_stopped) ? unflushed_ : 0,
                     compacts_ ? 4 * level0_ : 0, above_ > 0 ? 4 * above_ : 0};
  double weight = 0, may[3], weight_of[3];
  for (unsigned i = 0; i < 3; ++i) {
    double const limit = limits[i] == unbounded ? 1e18 : bytes_of(limits[i]);
    may[i] = std::min(wants[i], limit * step_s);
    // A limit leaves the device alone for a part of the time.
    double const alone = requests_of[i] * large / (clients + requests_of[i] * large);
    weight_of[i] =
        may[i] <= 0 ? 0
                    : requests_of[i] * large * std::min(1.0, limit / std::max(device * alone, 1.0));
    weight += weight_of[i];
  }
  double const wanted_ops_s = is_stopped ? 0 : wanted_ops(now_s) * slowed;
  double const wanted = std::min(wanted_ops_s * op_bytes * step_s, 1e12);
  double const fair = device * step_s * clients / (clients + weight);
  double others = 0;
  for (double const m : may) others += m;
  double const served = std::min(wanted, std::max(fair, device * step_s - others));
  double const rest = device * step_s - served;
  double moved[3];
  for (unsigned i = 0; i < 3; ++i) moved[i] = others <= rest ? may[i] : may[i] * rest / others;
  double const ops = op_bytes > 0 ? served / op_bytes : 0;
  done += ops;
  unflushed_ += ops * 0.5 * value - moved[0];
  level0_ += moved[0] - moved[1] / 4;
  above_ = std::max(above_ + moved[1] / 4 - moved[2] / 4, 0.0);
  level0_ = std::max(level0_, 0.0);
  unflushed_ = std::max(unflushed_, 0.0);
  sum_ms_ += 1000 * (is_stopped ? 0.1 : op_bytes * (clients + weight) / device);
  ++steps_;
  if (now_s - second_s_ >= 1) {
    latency_ms.push_back(sum_ms_ / steps_);
    sum_ms_ = steps_ = 0, second_s_ = now_s;
  }
  tail_look l;
  l.foreground = per_s(served / step_s);
  for (unsigned i = 0; i < 3; ++i) {
    l.moved[i] = per_s(moved[i] / step_s);
    l.waits[i] = wants[i] > may[i] && limits[i] != unbounded;
  }
  return l;
}

struct outcome {
  double ops, p95_ms, debt;
  double guarded_s;  // of the time
};

/// Nothing as algorithm: without a control.
outcome run_store(store::load how, tail_algorithm const* by, double seconds, tail_terms t) {
  store s(how);
  tail_latency control;
  if (by != nullptr) t.how = *by;
  control.use(t);
  tail_look sum;
  double guarded_s = 0;
  int const steps = static_cast<int>(seconds / store::step_s);
  for (int i = 1; i <= steps; ++i) {
    double const now_s = i * store::step_s;
    background_rates const none = {unbounded, unbounded, unbounded};
    tail_look const l = s.run(by == nullptr ? none : control.rates(), now_s);
    sum.foreground += l.foreground / 4;
    for (unsigned k = 0; k < background_count; ++k) {
      sum.moved[k] += l.moved[k] / 4;
      sum.waits[k] = sum.waits[k] || l.waits[k];
    }
    if (control.is_guarding()) guarded_s += store::step_s;
    if (i % 4 != 0) continue;
    control.look(sum, static_cast<std::int64_t>(now_s * 1e9));
    sum = {};
  }
  std::sort(s.latency_ms.begin(), s.latency_ms.end());
  return {s.done / seconds, s.latency_ms[s.latency_ms.size() * 95 / 100], s.debt(), guarded_s};
}

outcome run_store(store::load how, tail_algorithm const* by, double seconds) {
  return run_store(how, by, seconds, terms());
}

constexpr tail_algorithm ours = tail_algorithm::guarded, paio = tail_algorithm::paio_2022,
                         silk = tail_algorithm::silk_2019;

}  // namespace

TEST_CASE("background work: Algorithm 1 of PAIO as published") {
  tail_terms const t = terms(paio);
  rate const left = per_s(50 * mib), least = t.floor;
  rate const used = per_s(10 * mib);
  CHECK(divide_paio(t, used, {1, 1, 1}) == background_rates{left / 2, left / 2, least});
  CHECK(divide_paio(t, used, {1, 0, 1}) == background_rates{left, least, least});
  CHECK(divide_paio(t, used, {0, 1, 1}) == background_rates{least, left, least});
  CHECK(divide_paio(t, used, {0, 0, 1}) == background_rates{least, least, left});
  CHECK(divide_paio(t, per_s(90 * mib), {0, 0, 1}) == background_rates{least, least, least});
}

TEST_CASE("background work: like SILK, higher compactions stop while others run") {
  tail_terms const t = terms(silk);
  CHECK(divide_silk(t, 0, {1, 1, 1})[at_high] == 0);
  CHECK(divide_silk(t, 0, {1, 0, 1})[at_high] == 0);
  CHECK(divide_silk(t, 0, {0, 0, 1})[at_high] == t.total);
}

TEST_CASE("background work: ours has the floor, and not more than is there") {
  std::mt19937 random(7);
  std::uniform_real_distribution<> mibs(0, 100);
  for (int i = 0; i < 20'000; ++i) {
    tail_terms t{ours, per_s(mibs(random) * mib), per_s(mibs(random) * mib), 0};
    t.floor = std::min(per_s(mibs(random) * mib), t.total);
    rate const fg = per_s(mibs(random) * mib);
    background_rates const moved = {per_s(mibs(random) * mib), per_s(mibs(random) * mib),
                                    per_s(mibs(random) * mib)};
    background_rates const r = divide_guarded(t, fg, moved);
    for (rate const x : r) {
      CHECK(x >= t.floor);
      CHECK(x <= std::max(t.total, t.floor));
    }
    CHECK(r[at_flush] >= r[at_low]);
    CHECK(r[at_low] >= r[at_high]);
    // More foreground never means more for the others.
    background_rates const busier = divide_guarded(t, fg + per_s(mib), moved);
    for (unsigned k = 0; k < background_count; ++k) CHECK(busier[k] <= r[k]);
  }
}

TEST_CASE("background work: no sequence of looks leaves the bounds") {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> pick(0, 5);
  for (auto const how : {ours, paio, silk}) {
    tail_latency by;
    by.use(terms(how));
    std::int64_t now_ns = 0;
    for (int i = 0; i < 50'000; ++i) {
      constexpr rate some[] = {0, 1, per_s(mib), per_s(50 * mib), unbounded / 2, unbounded};
      tail_look l;
      l.foreground = some[pick(random)];
      for (auto& m : l.moved) m = some[pick(random)];
      for (auto& w : l.waits) w = pick(random) == 0;
      // Times that stand still or go back, too.
      by.look(l, now_ns += (pick(random) - 1) * 10 * ms);
      for (rate const x : by.rates()) CHECK((x == unbounded || x <= terms().total));
      if (by.is_guarding()) CHECK(is_free(by.rates()));
    }
  }
}

TEST_CASE("background work: without a foreground nothing is limited") {
  watched w(terms());
  w.run(held(looks(0, 20, 20, 20), {at_low, at_high}), 3);
  CHECK(w.by.sign() == tail_sign::quiet);
  CHECK(is_free(w.by.rates()));
}

TEST_CASE("background work: a foreground with room is kept free of it") {
  watched w(terms());
  w.run(held(looks(20, 0, 10, 30), {at_high}), 3);
  CHECK(w.by.sign() == tail_sign::holding);
  CHECK(bytes_of(w.by.rates()[at_flush]) == Approx(40 * mib).epsilon(0.01));
  CHECK(bytes_of(w.by.rates()[at_low]) == Approx(40 * mib).epsilon(0.01));
  CHECK(bytes_of(w.by.rates()[at_high]) == Approx(30 * mib).epsilon(0.01));
}

TEST_CASE("background work: saturation is told within a second, and stays while it lasts") {
  watched w(terms());
  w.run(looks(20, 0, 0, 10), 2);
  tail_look const full = held(looks(50, 0, 0, 10), {at_high});
  CHECK(w.until(full, tail_sign::saturation, 1) < 1);
  CHECK(is_free(w.by.rates()));
  w.run(looks(29, 5, 10, 16), 8);  // the device is full, and without limits
  CHECK(w.by.sign() == tail_sign::saturation);
  // Whether the foreground would take all again nobody knows before it is tried.
  CHECK(w.until(looks(29, 5, 10, 16), tail_sign::holding, 4) < 4);
  w.until(full, tail_sign::saturation, 2);
  CHECK(w.until(looks(10, 1, 1, 10), tail_sign::holding, 4) < 4);
}

TEST_CASE("background work: a burst of half a second is no saturation") {
  watched w(terms());
  for (int i = 0; i < 20; ++i) {
    w.run(held(looks(45, 0, 0, 10), {at_high}), 0.4);
    w.run(held(looks(10, 0, 0, 40), {at_high}), 1);
    CHECK(w.by.sign() == tail_sign::holding);
  }
}

TEST_CASE("background work: a foreground that takes just what is kept free is seen in the noise") {
  watched w(terms());
  for (int i = 0; w.by.sign() != tail_sign::saturation && i < 200; ++i)
    w.run(held(looks(i % 3 == 0 ? 15 : 40, 0, 0, 10), {at_high}), 0.06);
  CHECK(w.by.sign() == tail_sign::saturation);
}

TEST_CASE("background work: a guard that ends in vain holds longer the next time") {
  watched w(terms());
  tail_look const full = held(looks(50, 0, 0, 10), {at_high}), calm = looks(10, 0, 0, 10);
  double before = 0;
  for (int i = 0; i < 5; ++i) {
    w.until(full, tail_sign::saturation, 2);
    double const took = w.until(calm, tail_sign::holding, 100);
    CHECK(took > before * 1.3);
    before = took;
  }
}

TEST_CASE("background work: what is put off for long is a debt, the urgent first") {
  double before = 0;
  for (unsigned const kind : {at_flush, at_low, at_high}) {
    watched w(terms());
    double const took = w.until(held(looks(15, 0, 0, 3), {kind}), tail_sign::debt, 100);
    CHECK(took > 1.9 * before);
    CHECK(took < 65);
    CHECK(is_free(w.by.rates()));
    CHECK(w.until(looks(15, 0, 0, 45), tail_sign::holding, 60) < 40);
    before = took;
  }
}

TEST_CASE("background work: what does something between its waits is put off all the same") {
  watched w(terms());
  double took = 0;
  for (; w.by.sign() != tail_sign::debt && took < 40; took += 0.04) {
    w.run(held(looks(15, 0, 3), {at_low}), 0.02);
    w.run(looks(15, 0, 3), 0.02);
  }
  CHECK(took < 25);
}

TEST_CASE("background work: in a closed loop ours costs at most a twentieth") {
  for (double const seconds : {60.0, 300.0}) {
    outcome const plain = run_store(store::load::closed, nullptr, seconds);
    outcome const guarded = run_store(store::load::closed, &ours, seconds);
    CAPTURE(seconds, plain.ops, guarded.ops, plain.p95_ms, guarded.p95_ms, guarded.guarded_s);
    CHECK(guarded.ops > 0.95 * plain.ops);
    CHECK(guarded.p95_ms < 1.1 * plain.p95_ms);
    CHECK(guarded.debt < plain.debt + store::memtable);
    CHECK(guarded.guarded_s > 0.7 * seconds);
  }
}

TEST_CASE("background work: in a closed loop ours does no harm whatever the policy says") {
  outcome const plain = run_store(store::load::closed, nullptr, 200);
  for (double const total : {20, 40, 60, 120})
    for (double const part : {0.2, 0.5, 0.9}) {
      tail_terms const t{ours, per_s(total * mib), per_s(total * part * mib),
                         per_s(total * 0.05 * mib)};
      outcome const guarded = run_store(store::load::closed, &ours, 200, t);
      CAPTURE(total, part, plain.ops, guarded.ops, guarded.guarded_s);
      CHECK(guarded.ops > 0.95 * plain.ops);
    }
}

TEST_CASE("background work: a policy that keeps too much free starves nobody") {
  outcome const plain = run_store(store::load::steady, nullptr, 300);
  tail_terms const t{ours, per_s(30 * mib), per_s(27 * mib), per_s(1.5 * mib)};
  outcome const guarded = run_store(store::load::steady, &ours, 300, t);
  CAPTURE(plain.ops, guarded.ops, plain.debt, guarded.debt, guarded.guarded_s);
  CHECK(guarded.ops > 0.9 * plain.ops);
  CHECK(guarded.debt < plain.debt + 4 * store::memtable);
}

TEST_CASE("background work: in a closed loop the published control is slower than none") {
  outcome const plain = run_store(store::load::closed, nullptr, 600);
  outcome const published = run_store(store::load::closed, &paio, 600);
  CAPTURE(plain.ops, published.ops);
  CHECK(published.ops < 0.8 * plain.ops);
}

TEST_CASE("background work: with bursts ours has a shorter tail than none, and no debt") {
  outcome const plain = run_store(store::load::bursty, nullptr, 300);
  outcome const guarded = run_store(store::load::bursty, &ours, 300);
  outcome const published = run_store(store::load::bursty, &paio, 300);
  CAPTURE(plain.ops, guarded.ops, published.ops, plain.p95_ms, guarded.p95_ms, published.p95_ms);
  CAPTURE(plain.debt, guarded.debt, published.debt, guarded.guarded_s);
  CHECK(guarded.p95_ms < 0.7 * plain.p95_ms);
  CHECK(guarded.ops > 0.99 * plain.ops);
  CHECK(guarded.debt < 1.1 * plain.debt);
  // The published one has a shorter tail still, for it puts the work off.
  CHECK(published.p95_ms < guarded.p95_ms);
  CHECK(published.debt > 4 * plain.debt);
}
