// SPDX-License-Identifier: Apache-2.0
// lender SEGMENT LENT AFTER OWN: what a node daemon does to the first channel of a job, over and
// over until it is killed: LENT operations per second for 300 ms, then AFTER, and from 900 ms on
// OWN. Each round of 50 ms lends anew, so the lease ends only when nobody is left to prolong it.
// lender SEGMENT open: leaves a lease of 1000 units per second that is over; all is free then.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <climits>
#include <cstring>

#include "abi/segment.h"
#include "check.h"

using namespace sluice;

namespace {

std::uint64_t per_second(char const* text) {
  std::uint64_t rate = 0;
  CHECK(core::make_rate(strtoull(text, nullptr, 10) * core::op_units, 1'000'000'000, rate));
  return rate;
}

std::int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 5 || (argc == 3 && strcmp(argv[2], "open") == 0));
  int const fd = open(argv[1], O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at = mmap(nullptr, sizeof(abi::segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  auto& s = *static_cast<abi::segment*>(at);
  CHECK(s.head.magic_word == abi::magic && s.head.layout == abi::layout_version);
  if (argc == 3) {
    std::uint64_t rate = 0;
    CHECK(core::make_rate(1000, 1'000'000'000, rate));
    auto over = core::default_settings(rate);
    over.lease_end_ns = monotonic_ns();
    over.after_lease = 1;
    core::set_curve(s.bucket[0], over, over.lease_end_ns);
    return 0;
  }
  auto settings = core::default_settings(per_second(argv[2]), core::op_units);
  settings.after_rate_q40 = per_second(argv[3]);
  settings.own_rate_q40 = per_second(argv[4]);
  for (;;) {
    std::int64_t const now = monotonic_ns();
    settings.lease_end_ns = now + 300'000'000;
    settings.own_at_ns = now + 900'000'000;
    std::uint32_t const mask = core::set_curve(s.bucket[0], settings, now);
    if (mask != 0)
      syscall(SYS_futex, &core::futex_word(s.bucket[0]), FUTEX_WAKE_BITSET, INT_MAX, nullptr,
              nullptr, mask);
    nap_ms(50);
  }
}
