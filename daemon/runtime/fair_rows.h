// SPDX-License-Identifier: Apache-2.0
// A table of fixed size whose rows are jobs of users who do not trust each other. When it is full,
// a new row takes the place of one of the user who has the most. What stays true: nobody loses a
// row to one who has as many or more, however many they are together.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/owners.h"

namespace sluice::runtime {

/// The oldest of those that are over, or null. `is_over` and `when` tell that of one row.
template <class Rows, class IsOver, class When>
typename Rows::value_type* oldest_over(Rows& rows, IsOver const& is_over, When const& when) {
  typename Rows::value_type* oldest = nullptr;
  for (auto& r : rows)
    if (is_over(r) && (oldest == nullptr || when(r) < when(*oldest))) oldest = &r;
  return oldest;
}

class fair_rows {
 public:
  /// `owner_of`: all uids of one person are one user.
  explicit fair_rows(owner_lookup owner_of) : owner_of_(std::move(owner_of)) {}

  /// Nothing was found for him at this look: it is not searched again, however many rows he wants.
  bool is_left_out(uid_t uid, std::uint64_t look) const { return uid == uid_ && look == look_; }
  void note_left_out(uid_t uid, std::uint64_t look) { uid_ = uid, look_ = look; }

  /// Room for a row of `uid` in a table that is full; null: there is none for him. A row
  /// without a job is nobody's.
  template <class Rows, class IsOver, class When>
  typename Rows::value_type* room(Rows& rows, uid_t uid, IsOver const& is_over,
                                  When const& when) const {
    std::map<uid_t, uid_t> user_of;  // by uid
    std::map<uid_t, std::size_t> has;
    for (auto const& r : rows)
      if (!r.name.job.empty()) ++has[user(user_of, r.name.uid)];
    std::size_t const his = has[user(user_of, uid)];
    std::size_t most = his;
    for (auto const& [one, count] : has) most = std::max(most, count);
    // Who has the most by two or more gives a row even of a job that goes on.
    bool const is_clear = most > his + 1;
    std::size_t const least = is_clear ? most : his;
    auto const is_of_many = [&](auto const& r) {
      return !r.name.job.empty() && has[user(user_of, r.name.uid)] >= least;
    };
    auto* const over = oldest_over(
        rows, [&](auto const& r) { return is_over(r) && (r.name.job.empty() || is_of_many(r)); },
        when);
    if (over != nullptr || !is_clear) return over;
    auto const last = std::find_if(rows.rbegin(), rows.rend(), is_of_many);
    return last == rows.rend() ? nullptr : &*last;
  }

 private:
  uid_t user(std::map<uid_t, uid_t>& of, uid_t uid) const {
    auto const at = of.find(uid);
    return at != of.end() ? at->second : of[uid] = owner_by(owner_of_, uid);
  }

  owner_lookup owner_of_;
  uid_t uid_ = 0;
  std::uint64_t look_ = 0;  // looks begin with 1
};

}  // namespace sluice::runtime
