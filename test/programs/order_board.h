// SPDX-License-Identifier: Apache-2.0
// The order area of the job that this program runs in, for programs that look at what a stage did,
// and tell order_fake what to do with barriers.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

inline std::uint64_t key_of(sluice::abi::order_area& a, struct stat const& st) {
  std::uint64_t const device = std::uint64_t{major(st.st_dev)} << 32 | minor(st.st_dev);
  return sluice::abi::order_key(a, device, st.st_ino);
}

/// As a daemon does that holds the file.
inline void raise(sluice::abi::order_area& a, struct stat const& st, std::uint64_t flags) {
  std::uint64_t const key = key_of(a, st);
  CHECK(sluice::abi::note_inode(sluice::abi::set_of(a, key), key, [&](sluice::abi::order_inode& i) {
    i.state.fetch_or(flags | sluice::abi::order_watched);
  }));
}

/// What order_fake does with barriers, in ORDER_FAKE=gate: the last counter of the area says.
enum class wish : std::uint64_t { hold, make_durable, fail, send_back, leave };

inline std::atomic<std::uint64_t>& wish_word(sluice::abi::order_area& a) {
  return a.head.count[sluice::abi::order_count_slots - 1];
}
