// SPDX-License-Identifier: Apache-2.0
// Boards of leases. A stage that reads or writes a file in small pieces asks here that somebody
// holds one of the kernel's leases for it (fcntl F_SETLEASE), and a keeper of the job answers
// (daemon/keepers/lease_keeper.h, write_keeper.h). A read lease: nobody has the file open for
// writing, so what was read ahead is what the file has. A write lease: nobody else has it open at
// all, so nobody sees that it lacks what was just written. Whoever opens it nevertheless waits
// until the keeper has taken the row back.
//
//   free -> asked (stage) -> held or refused (keeper)
//   refused -> free (stage)
//   held -> broken (keeper: somebody opens the file) -> free (stage)
//   asked or held -> ended (stage) -> free (keeper, when its descriptor is closed)
// Of a write lease, whose ring the stage looks at before it is free:
//   ended -> broken (keeper, when all is written) -> free (stage)
//   held or ended -> broken (stage: its keepers have died, and it has done their work)
//
// What a dead process left, the keeper frees. A row is one word, so who dies leaves nothing
// half-said. The stage believes a row when, in this order: the keeper is alive, its word is fresh,
// and the row is the one it remembers.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::abi {

enum class lease_state : std::uint8_t { free, asked, held, refused, broken, ended };

inline constexpr unsigned read_leases = 64, write_leases = 16;
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

struct alignas(64) lease_row {
  std::atomic<std::uint64_t> word;           // its low half is a futex
  std::atomic<std::uint64_t> device, inode;  // keeper; of the file that it leased
};

struct lease_head {
  // A robust futex: the thread of the keeper. The kernel puts keeper_died in its place before it
  // closes what that had open.
  std::atomic<std::uint32_t> keeper;
  std::atomic<std::uint32_t> bell;           // a futex; grows when there is something to do
  std::atomic<std::uint32_t> trusted_until;  // keeper; a coarse_tick(): until then the kernel ends
                                             // no lease that the keeper has not heard of
  std::uint32_t targets;                     // creator; bit t: it is for files of target t
  std::atomic<std::uint64_t> pid_space;      // keeper; inode of its pid namespace: in others a row
                                             // would name somebody else
};

template <unsigned Rows>
struct alignas(64) lease_board {
  static constexpr unsigned rows = Rows;
  lease_head head;
  lease_row of[Rows];
};

/// File systems where a lease says the truth, and nobody is asked when a descriptor is closed:
/// others may write at a server, or below an overlay. As mountinfo and statfs(2) call them.
struct leased_type {
  char const* name;
  std::int64_t magic;
};
inline constexpr leased_type leased_types[] = {
    {"btrfs", 0x9123683E}, {"ext4", 0xEF53}, {"tmpfs", 0x01021994}, {"xfs", 0x58465342}};

inline constexpr std::uint32_t keeper_died = 0x4000'0000;  // FUTEX_OWNER_DIED
// A stage has done the work of dead keepers, and nobody follows them any more.
inline constexpr std::uint32_t keepers_gone = keeper_died | 1;

/// CLOCK_MONOTONIC in eighths of a second, the last of which is a little shorter.
constexpr std::uint32_t coarse_tick_of(std::int64_t s, std::int64_t ns) {
  return static_cast<std::uint32_t>(s) * 8 + static_cast<std::uint32_t>(ns >> 27);
}

/// Whether a keeper serves the board, and has looked of late.
inline bool is_kept(lease_head const& b, std::uint32_t tick_now) {
  std::uint32_t const keeper = b.keeper.load(std::memory_order_acquire);
  if (keeper == 0 || (keeper & keeper_died) != 0) return false;
  std::uint32_t const left = b.trusted_until.load(std::memory_order_acquire) - tick_now;
  return left != 0 && left < 1u << 16;
}

}  // namespace sluice::abi
