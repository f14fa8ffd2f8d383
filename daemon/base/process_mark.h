// SPDX-License-Identifier: Apache-2.0
// Identifies a process, so that a later one with its number is not taken for it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace sluice {

/// What the kernel says of a process, in a file whose reading costs the same however many threads
/// it has: /proc/PID/stat goes through all of them for sums that nobody here wants.
std::string stat_path(std::uint32_t pid);

/// When a process began, field 22 of /proc/PID/stat: with the pid an identity. 0: there is none, or
/// it is a zombie.
std::uint64_t start_ticks(std::uint32_t pid);

inline constexpr std::uint32_t no_uid = ~0u;

/// Its real uid, which is right for processes, too, that cannot be dumped; no_uid: there is none,
/// or it is not ours to see. May hang where the memory of the process does.
std::uint32_t uid_of(std::uint32_t pid);

/// Root's job may have processes of others. Who does not say whose he is may be anybody's.
constexpr bool is_owned(std::uint32_t uid, std::uint32_t owner) {
  return owner == 0 || uid == owner || uid == no_uid;
}

/// One of its threads would go on, and waits for a processor or a disk (R or D in /proc/PID/stat).
/// False: none does, it was stopped, there is no such process, or it is not ours to see.
bool has_waiting_thread(std::uint32_t pid);

/// 0: there is no such process, or it is not ours to see.
std::uint32_t parent_of(std::uint32_t pid);

/// A process, by its pidfd, has ended, whether somebody waits for it or not; or the other end of a
/// pipe or socket has. A signal that comes meanwhile says nothing.
bool has_ended(int fd);

/// There is none, or all of its threads have ended, whether somebody waits for it or not. Reads
/// nothing of /proc: what that costs is up to the process. True for a number that is none. Before
/// Linux 5.3 one that nobody has waited for counts as there.
bool has_process_ended(std::uint32_t pid);

struct process_mark {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  auto operator<=>(process_mark const&) const = default;
};

process_mark mark_of(std::uint32_t pid);
bool is_alive(process_mark const& p);

}  // namespace sluice
