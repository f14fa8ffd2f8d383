// SPDX-License-Identifier: Apache-2.0
// Parts that not every job needs: hints and write-behind for small I/O (small/), durable and
// ordered targets (order/), cluster epochs (epochs/), logs that tell roles (context/). Each is one
// row of hooks. The stage asks the rows when it attaches, enters a sandbox or ends, and knows
// nothing else of them; a job without them runs the same instructions as if they did not exist.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

constexpr std::size_t extra_page = 4096;
constexpr std::uint16_t extra_pages(std::size_t bytes) {
  return static_cast<std::uint16_t>((bytes + extra_page - 1) / extra_page);
}

/// The loader writes them, and what it writes lies on one page: each says alignas(extra), or the
/// compiler would align it more.
struct extra {
  std::uint32_t beside = 0;  // abi::area: told by the segment where a job has it
  std::uint16_t shared_pages = 0, private_pages = 0;  // of memory that it maps
  /// Maps its area, which lies in the directory of `segment_path`. False: it stays out.
  bool (*begin)(char* segment_path) = nullptr;
  /// Puts its bodies in the place of libc's functions; all of these are looked up already.
  void (*stand_before_libc)() = nullptr;
  void (*leave)() = nullptr;      // the process ends
  void (*go_blind)() = nullptr;   // no call is seen from now on
  void (*see_again)() = nullptr;  // the kernel refused
};

namespace small {
extern extra const hooks;
}
namespace gather {
extern extra const hooks;
}
namespace order {
extern extra const hooks;
}
namespace epochs {
extern extra const hooks;
}
namespace context {
extern extra const hooks;
}

/// Begins what the job has. `areas`: the mask of abi::area. True: something stands before libc.
bool begin_extras(std::uint32_t areas, char* segment_path);
/// The hook of each that has begun.
void each_extra(void (*extra::*hook)());
/// The most that all of them map.
std::size_t extra_bytes(std::uint16_t extra::*kind);

}  // namespace sluice
