// SPDX-License-Identifier: Apache-2.0
#include "journal/at_once.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <thread>

namespace sluice::journal {

namespace {

constexpr std::size_t threads_max = 32;

}  // namespace

int all_at_once(std::vector<std::function<int()>> const& syncs) {
  std::atomic<std::size_t> next = 0;
  std::atomic<int> first_error = 0;
  auto const work = [&] {
    for (std::size_t i = next++; i < syncs.size(); i = next++) {
      int none = 0;
      if (int const error = syncs[i](); error != 0)
        first_error.compare_exchange_strong(none, error);
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(syncs.size(), threads_max); ++i) try {
        others.emplace_back(work);
      } catch (std::system_error const&) {
        break;  // no more are allowed: fewer do
      }
    work();
  }
  return first_error;
}

std::uint64_t dirty_bytes() {
  std::ifstream lines("/proc/meminfo");
  std::string word;
  std::uint64_t kib = 0, sum = 0;
  while (lines >> word) {
    if ((word == "Dirty:" || word == "Writeback:") && lines >> kib) sum += kib << 10;
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return sum;
}

}  // namespace sluice::journal
