// SPDX-License-Identifier: Apache-2.0
// The facts of a process in /proc that are needed here. Any of them may be gone or forbidden at any
// moment: then the answer is empty. Only owner_of() has nothing to do with the memory of the
// process and answers at once. All others may hang where its file systems do: some take the lock of
// that memory or open its files, the rest may be left to take it down (process_teller.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process_mark.h"

namespace sluice::node {

struct process_facts {
  std::uint32_t pid = 0, parent = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t pid_space = 0;  // inode of its pid namespace; 0: we are not let in
  std::string name;
  std::uint32_t uid = 0;
};

struct process_stat {
  std::uint32_t parent = 0;
  std::uint64_t start_ticks = 0;
  std::uint32_t uid = no_uid;  // its real one; none: it has ended, or nobody asked
};

/// What /proc/PID/status says. Unlike the owner of /proc/PID the uid is right for processes, too,
/// that cannot be dumped.
struct process_inside {
  std::uint32_t pid = 0;  // in its own pid namespace; 0: unknown
  std::uint32_t uid = no_uid;
};

/// What stat_path() names, and status where the uid is wanted; none: no such process, or a zombie.
std::optional<process_stat> read_stat(std::uint32_t pid, bool with_uid);
/// The uid of /proc/PID; of none -1.
std::uint32_t owner_of(std::uint32_t pid);

/// What decides whether a process escapes.
struct process_doings {
  bool is_stuck = false;           // it was not looked at: that would hang
  bool is_readable = false;        // we were let in
  std::uint64_t bytes = 0;         // read(2) and write(2) moved, in all
  std::uint64_t calls = 0;         // of these
  bool has_library = false;        // ours is mapped
  bool is_static = false;          // its program has no dynamic loader
  bool has_ring = false;           // an io_uring is among its fds
  bool has_file = false;           // a file of a target is among its fds
  std::uint64_t mapped_bytes = 0;  // of files of targets, programs and libraries left out
  bool is_mapped = false;          // all that is mapped was seen, so what is not there is not
};

/// Tests have one of their own.
class proc {
 public:
  virtual ~proc() = default;
  virtual std::vector<std::uint32_t> pids() const = 0;
  virtual std::optional<process_facts> facts(std::uint32_t pid) const = 0;
  /// LD_PRELOAD as the process was started with.
  virtual std::string preload(std::uint32_t pid) const = 0;
  virtual process_inside inside(std::uint32_t pid) const = 0;
  /// `targets`: paths of those whose files count.
  virtual process_doings doings(std::uint32_t pid, std::span<std::string const> targets) const = 0;
};

/// Bytes of files below `targets` in the text of /proc/PID/maps; what has code in it is left out.
std::uint64_t mapped_below(std::string_view maps, std::span<std::string const> targets);

class real_proc final : public proc {
 public:
  std::vector<std::uint32_t> pids() const override;
  std::optional<process_facts> facts(std::uint32_t pid) const override;
  std::string preload(std::uint32_t pid) const override;
  process_inside inside(std::uint32_t pid) const override;
  process_doings doings(std::uint32_t pid, std::span<std::string const> targets) const override;
};

}  // namespace sluice::node
