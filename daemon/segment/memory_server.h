// SPDX-License-Identifier: Apache-2.0
// The processes that touch the memory of users in the loop's stead, and what the loop tells them.
// One serves the users of one owner. Its memory has theirs and the loop's copies of it, and it has
// no capability.
#pragma once

#include <cstdint>
#include <functional>

#include "base/letter.h"
#include "segment/touch.h"

namespace sluice::segment {

inline constexpr unsigned most_looked_at = 72;  // by one letter: all that an owner has

enum class memory_order : std::uint32_t {
  hold,    // `region` of `kind` from now on: with its file, and that of the copy
  let_go,  // of it
  change,  // the region
  look,    // at these; the only one that is answered
};

struct looked_at {
  std::uint32_t region = 0;
  std::uint32_t parts = 0;  // see segment::part
};

struct memory_words {
  memory_order what = {};
  std::uint32_t region = 0;
  region_kind kind = {};
  memory_change change = {};
  std::uint32_t count = 0;
  looked_at looks[most_looked_at] = {};
};

struct memory_answer {
  std::uint32_t count = 0;
  std::uint32_t broken[most_looked_at] = {};  // their files were cut short
};

/// The process that makes the others, by fork, with the socket that each letter to it has, and
/// answers whether it could. First it runs `settle`. Ends with the loop.
[[noreturn]] void make_memory_servers(int socket, std::function<void()> const& settle);

}  // namespace sluice::segment
