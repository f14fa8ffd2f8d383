// SPDX-License-Identifier: Apache-2.0
// The order area of the job that this program runs in, for programs that look at what a stage did,
// and tell order_fake what to do with barriers.
#pragma once

#include <sys/mman.h>

#include "abi/order_area.h"
#include "check.h"

inline sluice::abi::order_area& map_order_area() {
  std::string preload = getenv("LD_PRELOAD");
  preload = preload.substr(0, preload.find(':'));
  std::string const path = preload.substr(0, preload.rfind('/')) + "/order";
  int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at =
      mmap(nullptr, sizeof(sluice::abi::order_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  close(fd);
  return *static_cast<sluice::abi::order_area*>(at);
}

/// What order_fake does with barriers, in ORDER_FAKE=gate: the last counter of the area says.
enum class wish : std::uint64_t { hold, make_durable, fail, send_back, leave };

inline std::atomic<std::uint64_t>& wish_word(sluice::abi::order_area& a) {
  return a.head.count[sluice::abi::order_count_slots - 1];
}
