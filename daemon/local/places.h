// SPDX-License-Identifier: Apache-2.0
// Places for connections to the local socket: who gets one, and who gives one up for him. Pure.
// A user is an owner here (base/owners.h): all his uids are one. What stays true: a user has at
// most `most_of_an_owner`; root has `most_of_root` of its own. The last `kept_places` are for who
// holds none. Where none is left for him who comes, a user who has two more than he gives one up.
// So it takes as many users as there are places to keep another one out.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::local {

inline constexpr std::size_t most_places = 64, most_of_root = 16;
inline constexpr std::size_t most_of_an_owner = 4, kept_places = most_places / 8;

/// A place that is taken.
struct held_place {
  uid_t owner;
  std::int64_t heard_ns;  // when its holder asked last, or came
  bool is_waiting;        // for an answer
};

struct place_verdict {
  bool may_enter = false;
  std::optional<std::size_t> leaves = {};  // number of a held place that is to be freed for it
};

/// Whether one more of `owner` may have a place. Who leaves is of the user with the most places:
/// the one that was silent longest, and one that waits for an answer only where all do.
place_verdict place_for(uid_t owner, std::span<held_place const> held);

}  // namespace sluice::local
