// SPDX-License-Identifier: Apache-2.0
#include "local/places.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/shared_places.h"

namespace sluice::local {

place_verdict place_for(uid_t owner, std::span<held_place const> held) {
  std::map<uid_t, std::size_t> taken;
  for (held_place const& h : held) ++taken[h.owner];
  std::size_t const of_root = taken[0], of_owner = taken[owner];
  if (owner == 0) return {of_root < most_places + most_of_root};
  if (of_owner >= most_of_an_owner) return {};
  constexpr shared_places all = {most_places, most_of_an_owner, kept_places};
  if (all.has_one(held.size() - of_root, of_owner)) return {true};
  taken.erase(0);
  std::size_t most = 0;
  for (auto const& [user, count] : taken) most = std::max(most, count);
  if (most < of_owner + 2) return {};
  std::optional<std::size_t> leaves;
  auto const stays_longer = [&](std::size_t i) {
    return std::tuple(held[i].is_waiting, held[i].heard_ns);
  };
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i].owner == 0 || taken[held[i].owner] != most) continue;
    if (!leaves || stays_longer(i) < stays_longer(*leaves)) leaves = i;
  }
  return {true, leaves};
}

}  // namespace sluice::local
