// SPDX-License-Identifier: Apache-2.0
#include "keepers/keeping.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "base/clock.h"
#include "base/mounts.h"

namespace sluice::keepers {

namespace {

constexpr std::int64_t shortest_break_s = 4, longest_break_s = 60;

bool is_kept_now(abi::lease_head const& head) {
  timespec const now = timespec_of(steady_ns());
  return abi::is_kept(head, abi::coarse_tick_of(now.tv_sec, now.tv_nsec));
}

}  // namespace

std::int64_t break_time_s() {
  std::int64_t s = 0;
  std::ifstream("/proc/sys/fs/lease-break-time") >> s;
  return s < shortest_break_s ? 0 : std::min(s, longest_break_s);
}

std::uint32_t trusted_until(std::int64_t before_ns, std::int64_t break_s) {
  timespec const at = timespec_of(before_ns);
  if (break_s == 0) return 0;
  return abi::coarse_tick_of(at.tv_sec, at.tv_nsec) + static_cast<std::uint32_t>(break_s) / 2 * 8;
}

long wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t ns) {
  timespec const t = timespec_of(ns);
  return syscall(SYS_futex, &word, FUTEX_WAIT, seen, &t, nullptr, 0);
}

void wake(void* word) { syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0); }

void register_death(std::atomic<std::uint32_t>& keeper) {
  struct words {
    robust_list_head list;
    robust_list entry;
  };
  // Who kills for memory may take away what is private before the kernel has read it
  // (process_mrelease(2)). What is shared stays.
  void* const at =
      mmap(nullptr, sizeof(words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) _exit(1);
  auto& [list, entry] = *static_cast<words*>(at);
  list.list.next = &entry;
  entry.next = &list.list;
  list.futex_offset = reinterpret_cast<long>(&keeper) - reinterpret_cast<long>(&entry);
  syscall(SYS_set_robust_list, &list, sizeof list);
}

bool is_local(int fd) {
  auto const id = mount_id_of(fd);
  if (!id) return false;
  for (mount_row const& m : read_mounts())
    if (m.id == *id)
      return std::ranges::any_of(abi::leased_types,
                                 [&](abi::leased_type const& t) { return m.type == t.name; });
  return false;
}

void await_keeper(abi::lease_head const& head, pid_t pid) {
  constexpr std::int64_t pause_ns = 500'000;
  std::int64_t const until_ns = steady_ns() + second_ns;
  siginfo_t ended = {};
  while (!is_kept_now(head) && steady_ns() < until_ns) {
    waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == pid) return;
    sleep_until(steady_ns() + pause_ns);
  }
}

}  // namespace sluice::keepers
