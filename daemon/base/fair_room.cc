// SPDX-License-Identifier: Apache-2.0
#include "base/fair_room.h"

#include <algorithm>
#include <map>

namespace sluice {

namespace {

struct owner_wishes {
  std::vector<std::size_t> places;  // among all wishes
  std::size_t total = 0, used = 0;
  std::size_t next = 0;  // how many of them were looked at
  std::size_t first = 0;
  std::size_t place() const { return places[(first + next) % places.size()]; }
};

/// What each may have, so that all together have `room` at most.
std::size_t part_of_each(std::vector<owner_wishes> const& all, std::size_t room) {
  std::vector<std::size_t> totals;
  for (owner_wishes const& o : all) totals.push_back(o.total);
  std::ranges::sort(totals);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    std::size_t const part = room / (totals.size() - i);
    if (totals[i] > part) return part;
    room -= totals[i];
  }
  return totals.empty() ? 0 : totals.back();
}

struct round {
  std::span<room_wish const> wishes;
  std::size_t& room;
  std::vector<bool>& out;

  /// The next wish of an owner, where it fits.
  bool admit(owner_wishes& o, std::size_t most) {
    if (o.next == o.places.size()) return false;
    std::size_t const place = o.place(), size = wishes[place].size;
    if (size > room || o.used + size > most) return false;
    out[place] = true;
    o.used += size;
    room -= size;
    ++o.next;
    return true;
  }
};

std::vector<owner_wishes> by_owner(std::span<room_wish const> wishes, bool at_work) {
  std::map<std::uint64_t, owner_wishes> owners;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].is_at_work != at_work) continue;
    owner_wishes& o = owners[wishes[i].owner];
    o.places.push_back(i);
    o.total += wishes[i].size;
  }
  std::vector<owner_wishes> out;
  for (auto& [owner, o] : owners) out.push_back(std::move(o));
  return out;
}

}  // namespace

std::vector<bool> fair_room(std::span<room_wish const> wishes, std::size_t room,
                            std::uint64_t turn) {
  std::vector<bool> out(wishes.size());
  round all{wishes, room, out};
  for (bool const at_work : {true, false}) {
    std::vector<owner_wishes> owners = by_owner(wishes, at_work);
    std::size_t const part = part_of_each(owners, room);
    for (owner_wishes& o : owners) {
      std::size_t const n = o.places.size();
      if (o.total > part)  // a page each turn
        o.first = turn % n * std::max<std::size_t>(part * n / o.total, 1) % n;
      while (all.admit(o, part)) {
      }
    }
    // What the parts leave goes round, one each: there may be more owners than places.
    std::size_t const n = owners.size();
    for (std::size_t i = 0; i < n; ++i) all.admit(owners[(turn + i) % n], ~std::size_t{0});
  }
  return out;
}

}  // namespace sluice
