// SPDX-License-Identifier: Apache-2.0
// Who comes in where not all have room. What is at work comes first, then the rest. Both times the
// room is shared fairly over owners, so nobody keeps out another by wishing much. Pure: turns take
// the place of time. What stays true: what comes in has room, and an owner who wishes no more than
// his part lacks nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

struct room_wish {
  std::uint64_t owner = 0;
  std::size_t size = 1;
  bool is_at_work = false;
};

/// By wish: whether it comes in. What is left out has its turn when `turn` has grown.
std::vector<bool> fair_room(std::span<room_wish const> wishes, std::size_t room,
                            std::uint64_t turn);

}  // namespace sluice
