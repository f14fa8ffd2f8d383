// SPDX-License-Identifier: Apache-2.0
// The token bucket under real threads and processes that are killed: the bound holds, and what the
// dead held delays nobody for longer than it was worth. SEED=n repeats a run.
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <climits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bucket_random.h"
#include "libinterpose/core/token_bucket.h"

using namespace sluice::core;
using namespace bucket_test;

namespace {

std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

void futex_wait(bucket& b, decision const& d) {
  timespec until{d.deadline_ns / 1'000'000'000, d.deadline_ns % 1'000'000'000};
  syscall(SYS_futex, &futex_word(b), FUTEX_WAIT_BITSET, d.seq, &until, nullptr, d.mask);
}

void futex_wake(bucket& b, std::uint32_t mask) {
  syscall(SYS_futex, &futex_word(b), FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, mask);
}

void finish(bucket& b, ticket& t) {
  for (;;) {
    decision d = decide(b, t, clock_ns(), 50'000);
    if (d.what == decision::pass || d.what == decision::pass_open) return;
    if (d.what == decision::wait) futex_wait(b, d);
  }
}

}  // namespace

TEST_CASE("real threads stay within the bound and use the rate", "[bucket][property]") {
  bool const leases = GENERATE(false, true);
  constexpr int threads = 4;
  constexpr std::uint64_t cost = op_units;
  std::uint64_t const rate = q40((leases ? 400'000.0 : 50'000.0) * op_units);
  auto memory = std::make_unique<bucket>();
  bucket& b = *memory;
  std::int64_t const begin = clock_ns();
  init(b, default_settings(rate, op_units), begin);
  std::int64_t const end = begin + 600'000'000;
  std::vector<std::vector<std::int64_t>> stamps(threads);
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([&, i] {
      random_source r(seed() + std::uint64_t(i));
      lease l{};
      ticket t{};
      while (clock_ns() < end) {
        bool const passed = leases ? take_leased(b, l, cost, threads, t) : book(b, cost, t);
        if (!passed) finish(b, t);
        stamps[i].push_back(clock_ns());
        if (r() % 2048 == 0) usleep(3000);
        if (r() % 64 == 0 && refund(b, 0, clock_ns())) futex_wake(b, ~0u);
      }
    });
  for (int i = 0; clock_ns() < end; ++i) {
    usleep(5000);
    std::uint32_t mask =
        set_curve(b, default_settings(i % 2 ? rate : rate / 2, op_units), clock_ns());
    if (mask != 0) futex_wake(b, mask);
  }
  for (auto& t : pool) t.join();
  std::vector<std::int64_t> all;
  for (auto& s : stamps) all.insert(all.end(), s.begin(), s.end());
  std::sort(all.begin(), all.end());
  // The full rate is an upper bound of the integral. Each thread may stamp one pass late, at both
  // ends, and take one place from before an idle time.
  double const per_ns = double(rate) / 1099511627776.0 / double(op_units);
  double const bound = per_ns * (default_idle_ns + default_debt_ns) + 3 * threads + 1;
  double low = 0;
  double worst = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double const paid = per_ns * double(all[i] - begin);
    low = std::min(low, double(i) - paid);
    worst = std::max(worst, double(i + 1) - paid - low);
  }
  CHECK(worst <= bound);
  CHECK(double(all.size()) <= per_ns * 600e6 + bound);
  if (!leases) CHECK(double(all.size()) >= per_ns * 600e6 * 0.3);
  CHECK(plausible(b));
}

TEST_CASE("processes killed anywhere leave a working bucket", "[bucket][property]") {
  void* memory =
      mmap(nullptr, sizeof(bucket) + 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  bucket& b = *static_cast<bucket*>(memory);
  auto& passes = *reinterpret_cast<std::atomic<std::uint64_t>*>(&b + 1);
  double const per_second = 20'000;
  init(b, default_settings(q40(per_second * op_units), op_units), clock_ns());
  random_source r(seed());
  for (int round = 0; round < 30; ++round) {
    pid_t children[3];
    for (pid_t& child : children) {
      child = fork();
      if (child != 0) continue;
      ticket t;
      for (;;) {
        if (!book(b, op_units, t)) finish(b, t);
        passes.fetch_add(1);
        refund(b, 0, clock_ns());
      }
    }
    usleep(useconds_t(1000 + r() % 4000));
    for (pid_t child : children) kill(child, SIGKILL);
    for (pid_t child : children) waitpid(child, nullptr, 0);
    REQUIRE(plausible(b));
  }
  // What the dead held is due at once or lost: a survivor gets the rate from here on.
  ticket t;
  std::int64_t const from = clock_ns();
  std::uint64_t n = 0;
  for (; clock_ns() < from + 200'000'000; ++n)
    if (!book(b, op_units, t)) finish(b, t);
  double const ideal = per_second * double(clock_ns() - from) / 1e9;
  CHECK(double(n) <= ideal + per_second * 0.0505 + 100);
  CHECK(double(n) >= ideal * 0.25 - 100);
  munmap(memory, sizeof(bucket) + 64);
}
