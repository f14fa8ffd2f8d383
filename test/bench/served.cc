// SPDX-License-Identifier: Apache-2.0
// What every job of a world was let through on one channel, and whether anybody waits, over time:
// read from the segments below a directory (DIR/NODE/jobs/JOB/segment). For the experiments.
//
//   served DIR CHANNEL [EVERY_MS]   lines:  T_NS NODE/JOB AMOUNT WAITS   (operations or bytes since
//   the job began; 1 while a request waits), one per job each EVERY_MS (10), until SIGTERM.
//
// A job that ended says its last amount once more and is then left out.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "node/demand_meter.h"
#include "segment/jobs.h"
#include "segment/sums.h"
#include "watched_jobs.h"

namespace {

using namespace sluice;

volatile sig_atomic_t is_over = 0;

struct nothing {};
using job = bench::watched<nothing>;

void show(std::string const& name, job const& w, std::int64_t now_ns) {
  auto const sums = segment::sum(*w.segment);
  bool const waits = node::look(*w.segment, w.channel, node::look_depth::threads, now_ns).blocked;
  fmt::print("{} {} {} {:d}\n", now_ns, name, sums.channel[w.channel].amount, waits);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: served DIR CHANNEL [EVERY_MS]\n");
    return 2;
  }
  std::int64_t const every_ns = (argc > 3 ? std::max(std::atoi(argv[3]), 1) : 10) * 1'000'000ll;
  struct sigaction stop = {};
  stop.sa_handler = [](int) { is_over = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  sigaction(SIGINT, &stop, nullptr);
  bench::watched_jobs<nothing> all(argv[1], argv[2]);
  std::int64_t next_ns = steady_ns();
  while (is_over == 0) {
    all.look();
    for (auto const& [name, w] : all) show(name, w, steady_ns());
    all.forget_ended();
    std::fflush(stdout);
    next_ns += every_ns;
    timespec const until = {next_ns / 1'000'000'000, next_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  return 0;
}
