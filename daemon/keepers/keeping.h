// SPDX-License-Identifier: Apache-2.0
// What both keepers of leases need (lease_keeper.h, write_keeper.h): their boards, their deaths,
// and which files and processes they may look at.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "abi/lease_board.h"

namespace sluice::keepers {

inline constexpr std::int64_t second_ns = 1'000'000'000;

/// Seconds until the kernel ends a lease by itself; 0: never, not known, or too few to be of use.
std::int64_t break_time_s();

/// The same, asked for once in a second.
class break_time {
 public:
  std::int64_t seconds(std::int64_t now_ns) {
    if (!is_known_ || now_ns - looked_ns_ >= second_ns)
      is_known_ = true, looked_ns_ = now_ns, s_ = break_time_s();
    return s_;
  }

 private:
  bool is_known_ = false;
  std::int64_t looked_ns_ = 0, s_ = 0;
};

/// As lease_head::trusted_until says it: a lease that was whole at `before_ns` is not ended by the
/// kernel before half of that time has passed. 0 where leases are of no use.
std::uint32_t trusted_until(std::int64_t before_ns, std::int64_t break_s);

/// Sleeps while the word is `seen`. Negative, with errno, when something else ends it.
long wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t ns);
void wake(void* word);

/// The kernel writes keeper_died into the word before it closes what this thread has open, if the
/// word is its number then. One such word for each process.
void register_death(std::atomic<std::uint32_t>& keeper);

/// Of a file system of abi::leased_types; no server is asked.
bool is_local(int fd);

/// A program that begins at once is to find its keeper. It may be that of another run.
void await_keeper(abi::lease_head const& head, pid_t pid);

}  // namespace sluice::keepers
