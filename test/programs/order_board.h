// SPDX-License-Identifier: Apache-2.0
// The order area of the job that this program runs in, for programs that look at what a stage did,
// and tell order_fake what to do with barriers.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <set>

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

inline struct stat stat_of(int fd) {
  struct stat st;
  CHECK(fstat(fd, &st) == 0);
  return st;
}

/// Its ctime, as names that are given up are noted with it.
inline std::uint64_t changed_ns(struct stat const& st) {
  return static_cast<std::uint64_t>(st.st_ctim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(st.st_ctim.tv_nsec);
}

struct noted {
  std::set<std::uint64_t> pages;
  std::uint64_t flags = 0, cut = 0, created = 0;
  bool is_nothing() const { return pages.empty() && flags == 0 && cut == 0 && created == 0; }
};

/// What the area says of the file, which is forgotten there, but for whether it is watched.
inline noted take(sluice::abi::order_area& a, struct stat const& st) {
  noted n;
  std::uint64_t const key = key_of(a, st), watched = sluice::abi::order_watched;
  sluice::abi::order_set& s = sluice::abi::set_of(a, key);
  sluice::abi::each_way(s, key, [&](unsigned w) {
    sluice::abi::order_inode& i = s.way[w];
    sluice::core::take(i.written, [&](sluice::core::page_range r) {
      for (std::uint64_t p = r.first; p < r.end(); ++p) n.pages.insert(p);
    });
    n.flags |= i.state.fetch_and(watched) & ~watched;
    n.cut = i.cut.exchange(0);
    n.created = i.created.exchange(0);
  });
  return n;
}

/// What order_fake does with barriers, in ORDER_FAKE=gate: the last counter of the area says.
enum class wish : std::uint64_t { hold, make_durable, fail, send_back, leave };

inline std::atomic<std::uint64_t>& wish_word(sluice::abi::order_area& a) {
  return a.head.count[sluice::abi::order_count_slots - 1];
}
