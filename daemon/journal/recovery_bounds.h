// SPDX-License-Identifier: Apache-2.0
// What recovering a journal may take of a node where users do not trust each other. Its user says
// how large the file is and what is in it, and recovery remembers every file that it names.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace sluice::journal {

/// Of one recovery. A journal that our own daemon wrote needs less: each file has two records of
/// 128 bytes at least, and recovery remembers some 300 bytes of it.
constexpr std::uint64_t recovery_memory_bytes(std::uint64_t journal_bytes) {
  return 2 * journal_bytes + (std::uint64_t{64} << 20);
}

/// While it lives, this process opens no larger journal and has that much memory. A process that is
/// forked meanwhile keeps the bound of memory. What finds none throws std::bad_alloc.
class recovery_bounds {
 public:
  explicit recovery_bounds(std::uint64_t journal_bytes);
  ~recovery_bounds();
  recovery_bounds(recovery_bounds const&) = delete;
  recovery_bounds& operator=(recovery_bounds const&) = delete;

 private:
  rlimit before_ = {};
  bool is_set_ = false;
};

}  // namespace sluice::journal
