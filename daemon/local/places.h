// SPDX-License-Identifier: Apache-2.0
// Places for connections to the local socket: who gets one, and who gives one up for him. Pure.
// What stays true: a user has at most `most_of_a_uid`; root has `most_of_root` of its own. Where
// all are taken, a user who has two more than whoever comes gives one up. So it takes as many users
// as there are places to keep another one out.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::local {

inline constexpr std::size_t most_places = 64, most_of_root = 16, most_of_a_uid = 4;

/// A place that is taken.
struct held_place {
  uid_t uid;
  std::int64_t heard_ns;  // when its holder asked last, or came
  bool is_waiting;        // for an answer
};

struct place_verdict {
  bool may_enter = false;
  std::optional<std::size_t> leaves = {};  // number of a held place that is to be freed for it
};

/// Whether one more of `uid` may have a place. Who leaves is of the user with the most places:
/// the one that was silent longest, and one that waits for an answer only where all do.
place_verdict place_for(uid_t uid, std::span<held_place const> held);

}  // namespace sluice::local
