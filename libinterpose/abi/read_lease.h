// SPDX-License-Identifier: Apache-2.0
// The board of read leases, a part of the segment: a stage that reads a file in small pieces asks
// here that somebody holds the kernel's read lease for it (fcntl F_SETLEASE), and the keeper of the
// job (daemon/commands/cli/lease_keeper.h) answers. While it is held nobody has the file open for
// writing, so what was read ahead is what the file has. Whoever opens it for writing waits until
// the keeper has taken the row back.
//
//   free -> asked (stage) -> held or refused (keeper)
//   held -> broken (keeper: somebody writes) -> free (stage)
//   asked or held -> ended (stage) -> free (keeper, when its descriptor is closed)
//
// A row is one word, so who dies leaves nothing half-said. The stage believes a row when, in this
// order: the keeper is alive, its word is fresh, and the row is the one it remembers.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::abi {

enum class lease_state : std::uint8_t { free, asked, held, refused, broken, ended };

inline constexpr unsigned read_leases = 64;
inline constexpr unsigned most_leased_fds = 1 << 12;

/// pid 32 | fd 12 | how often the row was asked for 16 | lease_state 4
constexpr std::uint64_t lease_word(std::uint32_t pid, unsigned fd, unsigned count, lease_state s) {
  return std::uint64_t{pid} << 32 | std::uint64_t{fd % most_leased_fds} << 20 |
         std::uint64_t{count & 0xffff} << 4 | static_cast<std::uint64_t>(s);
}
constexpr lease_state state_of(std::uint64_t word) { return static_cast<lease_state>(word & 0xf); }
constexpr unsigned count_of(std::uint64_t word) { return word >> 4 & 0xffff; }
constexpr unsigned fd_of(std::uint64_t word) { return word >> 20 & (most_leased_fds - 1); }
constexpr std::uint32_t pid_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
/// The same in another state.
constexpr std::uint64_t with(std::uint64_t word, lease_state s) {
  return (word & ~std::uint64_t{0xf}) | static_cast<std::uint64_t>(s);
}

struct alignas(64) read_lease {
  std::atomic<std::uint64_t> word;           // its low half is a futex
  std::atomic<std::uint64_t> device, inode;  // keeper; of the file that it leased
};

struct alignas(64) read_board {
  // A robust futex: the thread of the keeper. The kernel puts keeper_died in its place before it
  // closes what that had open.
  std::atomic<std::uint32_t> keeper;
  std::atomic<std::uint32_t> bell;           // a futex; grows when there is something to do
  std::atomic<std::uint32_t> trusted_until;  // keeper; a coarse_tick(): the kernel ends no lease
                                             // before, which is not heard of
  std::uint32_t targets;                     // creator; bit t: small reads of it are buffered
  read_lease of[read_leases];
};

inline constexpr std::uint32_t keeper_died = 0x4000'0000;  // FUTEX_OWNER_DIED

/// CLOCK_MONOTONIC in eighths of a second, the last of which is a little shorter.
constexpr std::uint32_t coarse_tick_of(std::int64_t s, std::int64_t ns) {
  return static_cast<std::uint32_t>(s) * 8 + static_cast<std::uint32_t>(ns >> 27);
}

/// Whether a keeper serves the board, and has looked of late.
inline bool is_kept(read_board const& b, std::uint32_t tick_now) {
  std::uint32_t const keeper = b.keeper.load(std::memory_order_acquire);
  if (keeper == 0 || (keeper & keeper_died) != 0) return false;
  std::uint32_t const left = b.trusted_until.load(std::memory_order_acquire) - tick_now;
  return left != 0 && left < 1u << 16;
}

}  // namespace sluice::abi
