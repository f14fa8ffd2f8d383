// SPDX-License-Identifier: Apache-2.0
// spinner SECONDS: reads the clock without end, and prints the longest time between two readings in
// ns, how many were more than 5 us apart, and their sum: what others took of this processor.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::int64_t second_ns = 1'000'000'000, noticed_ns = 5'000;

std::int64_t now_ns() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * second_ns + t.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  long const seconds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10;
  std::int64_t before = now_ns(), longest = 0, count = 0, lost = 0;
  std::int64_t const end = before + seconds * second_ns;
  while (before < end) {
    std::int64_t const now = now_ns();
    std::int64_t const gap = now - before;
    before = now;
    if (gap < noticed_ns) continue;
    longest = std::max(longest, gap);
    lost += gap;
    ++count;
  }
  std::printf("%lld %lld %lld\n", static_cast<long long>(longest), static_cast<long long>(count),
              static_cast<long long>(lost));
}
