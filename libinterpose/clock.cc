// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <time.h>

#include <atomic>

#include "abi/lease_board.h"
#include "loaded.h"
#include "sys.h"

namespace sluice {

namespace {

using clock_function = int(clockid_t, timespec*);

#if defined(__aarch64__)
#define CLOCK_OF_KERNEL "__kernel_clock_gettime"
#else
#define CLOCK_OF_KERNEL "__vdso_clock_gettime"
#endif

// In a sandbox that forbids it there is no time, and whoever waited goes on.
int ask_kernel(clockid_t which, timespec* to) {
  long const r = sys::call(SYS_clock_gettime, which, sys::as_long(to));
  if (sys::failed(r)) *to = {};
  return static_cast<int>(r);
}

constinit std::atomic<clock_function*> known{nullptr};

// Some tools, such as valgrind, hide what the kernel maps.
[[gnu::cold, gnu::noinline]] clock_function* find_clock() {
  void* const found =
      loaded::find_in_vdso({CLOCK_OF_KERNEL, loaded::hash_of(CLOCK_OF_KERNEL), nullptr});
  auto* const clock = found == nullptr ? ask_kernel : reinterpret_cast<clock_function*>(found);
  known.store(clock, std::memory_order_relaxed);
  return clock;
}

[[gnu::always_inline]] inline timespec read_clock(clockid_t which) {
  timespec t;
  clock_function* clock = known.load(std::memory_order_relaxed);
  if (clock == nullptr) [[unlikely]]
    clock = find_clock();
  clock(which, &t);
  return t;
}

}  // namespace

void ask_kernel_for_time() { known.store(ask_kernel, std::memory_order_relaxed); }

std::int64_t now_ns() {
  timespec const t = read_clock(CLOCK_MONOTONIC);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::uint32_t coarse_tick() {
  timespec const t = read_clock(CLOCK_MONOTONIC_COARSE);
  return abi::coarse_tick_of(t.tv_sec, t.tv_nsec);
}

}  // namespace sluice
