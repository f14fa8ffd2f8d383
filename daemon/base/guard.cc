// SPDX-License-Identifier: Apache-2.0
#include "base/guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace sluice {

namespace {

struct range {
  std::atomic<bool> taken;
  std::atomic<std::uintptr_t> from;
  std::atomic<std::size_t> bytes;  // 0: not in force
  std::atomic<bool> broken;
};

constexpr int most_ranges = 2048;
range ranges[most_ranges];

range* range_of(std::uintptr_t at) {
  for (range& r : ranges) {
    std::size_t const bytes =
        r.bytes.load(std::memory_order_acquire);  // pairs with guarded_memory()
    std::uintptr_t const from = r.from.load(std::memory_order_relaxed);
    if (bytes != 0 && at >= from && at - from < bytes) return &r;
  }
  return nullptr;
}

void on_bus_error(int, siginfo_t* info, void*) {
  range* const hit = range_of(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (hit != nullptr) {
    void* const from = reinterpret_cast<void*>(hit->from.load(std::memory_order_relaxed));
    void* const got = mmap(from, hit->bytes.load(std::memory_order_relaxed), PROT_READ | PROT_WRITE,
                           MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hit->broken.store(true);
    if (got == from) return;
  }
  // Not ours: die of it as everybody does.
  signal(SIGBUS, SIG_DFL);
}

}  // namespace

void install_guard() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

guarded_memory::guarded_memory(void* at, std::size_t bytes) : slot_(-1) {
  madvise(at, bytes, MADV_DONTFORK);
  for (int i = 0; i < most_ranges; ++i) {
    if (ranges[i].taken.exchange(true)) continue;
    slot_ = i;
    ranges[i].broken = false;
    ranges[i].from = reinterpret_cast<std::uintptr_t>(at);
    ranges[i].bytes.store(bytes, std::memory_order_release);
    return;
  }
}

guarded_memory::~guarded_memory() {
  if (slot_ < 0) return;
  ranges[slot_].bytes = 0;
  ranges[slot_].taken = false;
}

bool guarded_memory::is_broken() const { return slot_ >= 0 && ranges[slot_].broken.load(); }

}  // namespace sluice
