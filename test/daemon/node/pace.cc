// SPDX-License-Identifier: Apache-2.0
// When a node steps next, and that looks which are not evenly spaced are weighed by their time.
#include "node/pace.h"

#include <catch2/catch.hpp>

#include "node/demand_meter.h"

using namespace sluice::node;

namespace {

constexpr std::int64_t ms = 1'000'000, s = 1000 * ms, begin = 100 * s;

step_reasons with_jobs() {
  step_reasons r;
  r.stepped_ns = begin;
  r.has_jobs = true;
  return r;
}

}  // namespace

TEST_CASE("node pace: without a reason there is no step", "[node][pace]") {
  step_reasons r;
  r.stepped_ns = begin;
  CHECK(next_step_ns(r) == never_ns);
  CHECK(poll_ms(next_step_ns(r), begin) == -1);
  r.stirred_ns = begin;  // the last job has just gone
  CHECK(next_step_ns(r) == never_ns);
}

TEST_CASE("node pace: a sign makes steps fast, and it passes", "[node][pace]") {
  step_reasons r = with_jobs();
  CHECK(next_step_ns(r) == begin + quiet_step_ns);
  r.stirred_ns = begin - stir_ns + 1;
  CHECK(next_step_ns(r) == begin + 10 * ms);
  CHECK(is_stirred(r, begin));
  r.stirred_ns = begin - stir_ns;
  CHECK(next_step_ns(r) == begin + quiet_step_ns);
  CHECK(!is_stirred(r, begin));
}

TEST_CASE("node pace: a cycle waits while all have what they want", "[node][pace]") {
  std::int64_t const due = begin + 100 * ms;
  CHECK(!is_cycle_over(begin, due, false, due - 1));
  CHECK(is_cycle_over(begin, due, false, due));
  CHECK(!is_cycle_over(begin, due, true, begin + s - 1));
  CHECK(is_cycle_over(begin, due, true, begin + s));
  CHECK(!is_cycle_over(begin, begin + 2 * s, true, begin + s));  // the policy wants it later
}

TEST_CASE("node pace: background work that is held back is looked at when it is due",
          "[node][pace]") {
  step_reasons r = with_jobs();
  r.background_ns = begin + 20 * ms;
  CHECK(next_step_ns(r) == begin + 20 * ms);
  r.has_jobs = false;
  r.background_ns = never_ns;
  CHECK(next_step_ns(r) == never_ns);
}

TEST_CASE("node pace: quiet steps are at most ten a second", "[node][pace]") {
  step_reasons r = with_jobs();
  int steps = 0;
  for (; r.stepped_ns < begin + 60 * s; ++steps) r.stepped_ns = next_step_ns(r);
  CHECK(steps <= 600);
  CHECK(steps >= 500);
}

TEST_CASE("node pace: a slower local cycle is obeyed, a faster one only after a sign",
          "[node][pace]") {
  step_reasons r = with_jobs();
  r.local_ns = s;
  CHECK(next_step_ns(r) == begin + s);
  r.local_ns = ms;
  CHECK(next_step_ns(r) == begin + quiet_step_ns);
  r.stirred_ns = begin;
  CHECK(next_step_ns(r) == begin + ms);
}

TEST_CASE("node pace: the first that is due counts, each for itself", "[node][pace]") {
  for (auto const due : {&step_reasons::cycle_ns, &step_reasons::sweep_ns, &step_reasons::heed_ns,
                         &step_reasons::clients_ns, &step_reasons::feed_ns}) {
    step_reasons r;
    r.stepped_ns = begin;
    r.*due = begin + 3 * s;
    CHECK(next_step_ns(r) == begin + 3 * s);
    r.has_jobs = true;
    CHECK(next_step_ns(r) == begin + quiet_step_ns);
    r.*due = begin + 7 * ms;
    CHECK(next_step_ns(r) == begin + 7 * ms);
  }
  step_reasons between;
  between.stepped_ns = begin;
  between.is_between = true;
  CHECK(next_step_ns(between) == begin + quiet_step_ns);
}

TEST_CASE("node pace: poll never wakes early and never for long without an end", "[node][pace]") {
  CHECK(poll_ms(begin, begin) == 0);
  CHECK(poll_ms(begin - 5 * s, begin) == 0);
  CHECK(poll_ms(begin + 1, begin) == 1);
  CHECK(poll_ms(begin + 10 * ms, begin) == 10);
  CHECK(poll_ms(begin + 10 * ms + 1, begin) == 11);
  CHECK(poll_ms(begin + 100'000 * s, begin) == 3'600'000);
}

TEST_CASE("node pace: a share of blocked time is one of time, not of looks", "[node][pace]") {
  demand_meter m;
  m.start({}, 0, begin);
  sample waits;
  waits.blocked = true;
  m.tick({}, 1000, begin + 90 * ms);
  m.tick(waits, 1000, begin + 100 * ms);
  CHECK(m.take(unit_kind::ops, 0, begin + 100 * ms).blocked_ppm == 100'000);
  // A wait that no look saw is as long as a fast look, however long ago the last one was.
  m.tick({}, 1000, begin + 200 * ms);
  CHECK(m.take(unit_kind::ops, 1, begin + 200 * ms).blocked_ppm == 100'000);
  m.tick({}, 1000, begin + 300 * ms);
  CHECK(m.take(unit_kind::ops, 1, begin + 300 * ms).blocked_ppm == 0);
  m.tick(waits, 1000, begin + 300 * ms);
  CHECK(m.take(unit_kind::ops, 1, begin + 300 * ms).blocked_ppm > 0);  // never lost
}
