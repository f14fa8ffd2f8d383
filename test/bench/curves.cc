// SPDX-License-Identifier: Apache-2.0
// Watches what every job of a world may use: reads the curves of one channel in all segments below
// a directory (DIR/NODE/jobs/JOB/segment), once a millisecond, and prints a line whenever one
// changes. At the end (SIGTERM) it tells the largest sum ever seen, which is what capacity means.
//
//   curves DIR CHANNEL [CAPACITY]   lines:  T_NS NODE/JOB RATE SERVED   (per second; -1 open;
//   served since start); T_NS over SUM: NODE/JOB=RATE… when the sum comes to be above the capacity,
//   T_NS within when it no longer is; the last line:   max SUM AT_NS samples N over M
//
// A sample reads all curves twice and takes the lesser rate of each, so that a decrease here
// followed by an increase there, both while we look, is not taken for an overload.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "core/token_bucket.h"
#include "watched_jobs.h"

namespace {

using namespace sluice;

volatile sig_atomic_t is_over = 0;

struct seen {
  double shown = -2;
  double rate = 0;  // of this sample
};

using job = bench::watched<seen>;
using jobs = bench::watched_jobs<seen>;

double units_per(core::unit_kind unit) {
  return unit == core::unit_kind::ops ? double(core::op_units) : 1.0;
}

core::unit_kind unit_of(job const& w) {
  return static_cast<core::unit_kind>(w.segment->rules.channel[w.channel].unit);
}

/// Per second; 0 when paused, -1 when open.
double rate_now(job const& w, std::int64_t now_ns) {
  core::curve c;
  core::read_curve(as_shared(w.segment->bucket[w.channel]), c);
  core::curve_settings const& s = c.set;
  bool const over = s.lease_end_ns != 0 && now_ns >= s.lease_end_ns;
  if (over && s.after_lease == 1) return -1;
  std::uint64_t rate_q40 = over ? s.after_rate_q40 : s.rate_q40;
  if (s.own_at_ns != 0 && now_ns >= s.own_at_ns) rate_q40 = s.own_rate_q40;
  return double(rate_q40) / double(std::uint64_t{1} << 40) * 1e9 / units_per(unit_of(w));
}

double sample(jobs& all, std::int64_t now_ns) {
  for (auto& [name, w] : all) w.own.rate = rate_now(w, now_ns);
  double sum = 0;
  for (auto& [name, w] : all) {
    w.own.rate = std::min(w.own.rate, rate_now(w, now_ns));
    sum += std::max(w.own.rate, 0.0);
  }
  return sum;
}

void show_changes(jobs& all, std::int64_t now_ns) {
  for (auto& [name, w] : all) {
    if (w.own.rate == w.own.shown) continue;
    double const served =
        double(core::served_units(as_shared(w.segment->bucket[w.channel]), now_ns)) /
        units_per(unit_of(w));
    fmt::print("{} {} {:.3f} {:.0f}\n", now_ns, name, w.own.rate, served);
    w.own.shown = w.own.rate;
  }
}

/// Tells when an overload begins, and of whom it is made, and when it ends.
void show_overload(jobs& all, std::int64_t now_ns, double sum, bool is_above, bool& was_above) {
  if (is_above && !was_above) {
    fmt::print("{} over {:.1f}:", now_ns, sum);
    for (auto const& [name, w] : all)
      if (w.own.rate > 0) fmt::print(" {}={:.1f}", name, w.own.rate);
    fmt::print("\n");
  }
  if (!is_above && was_above) fmt::print("{} within\n", now_ns);
  was_above = is_above;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: curves DIR CHANNEL [CAPACITY]\n");
    return 2;
  }
  double const capacity = argc > 3 ? std::atof(argv[3]) : 0;
  struct sigaction stop = {};
  stop.sa_handler = [](int) { is_over = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  sigaction(SIGINT, &stop, nullptr);
  jobs all(argv[1], argv[2]);
  double most = 0;
  std::int64_t most_at_ns = 0;
  std::uint64_t samples = 0, over = 0;
  bool was_above = false;
  for (std::uint64_t round = 0; is_over == 0; ++round) {
    all.forget_ended();
    if (round % 20 == 0) all.look();
    std::int64_t const now_ns = steady_ns();
    double sum = sample(all, now_ns);
    if (capacity > 0 && sum > capacity) {  // a job may have gone while we looked
      all.forget_ended();
      sum = 0;
      for (auto const& [name, w] : all) sum += std::max(w.own.rate, 0.0);
    }
    show_changes(all, now_ns);
    ++samples;
    bool const is_above = capacity > 0 && sum > capacity * 1.000001 + 1;
    if (is_above) ++over;
    show_overload(all, now_ns, sum, is_above, was_above);
    if (sum > most) most = sum, most_at_ns = now_ns;
    if (round % 20 == 0) std::fflush(stdout);
    timespec const pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  fmt::print("max {:.3f} {} samples {} over {}\n", most, most_at_ns, samples, over);
  return 0;
}
