// SPDX-License-Identifier: Apache-2.0
// A table of fixed size whose rows are jobs of users who do not trust each other. When it is full,
// a new row takes the place of one of the user who has the most, so nobody pushes others out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace sluice::runtime {

/// For whom a full table had no room at this look: it is not searched for him again, however many
/// rows he wants.
class left_out_user {
 public:
  bool is(uid_t uid, std::uint64_t look) const { return uid == uid_ && look == look_; }
  void note(uid_t uid, std::uint64_t look) { uid_ = uid, look_ = look; }

 private:
  uid_t uid_ = 0;
  std::uint64_t look_ = 0;  // looks begin with 1
};

/// Room for a row of `uid` in a table that is full. `oldest`: of the rows that are over, whosever
/// they are, the oldest one, or null. `is_over` and `when` tell that of one row. A row without a
/// job is nobody's, and stays. Null: there is no room for him.
template <class Rows, class IsOver, class When>
typename Rows::value_type* room_in_full(Rows& rows, uid_t uid, typename Rows::value_type* oldest,
                                        IsOver const& is_over, When const& when) {
  std::map<uid_t, std::size_t> has;
  for (auto const& r : rows)
    if (!r.name.job.empty()) ++has[r.name.uid];
  auto most = has.begin();
  for (auto one = has.begin(); one != has.end(); ++one)
    if (one->second > most->second) most = one;
  bool const is_his = most != has.end() && most->first == uid;
  if (most == has.end() || (!is_his && most->second <= has[uid] + 1)) return oldest;
  typename Rows::value_type *over = nullptr, *last = nullptr;
  for (auto& r : rows) {
    if (r.name.job.empty() || r.name.uid != most->first) continue;
    last = &r;
    if (is_over(r) && (over == nullptr || when(r) < when(*over))) over = &r;
  }
  return over != nullptr || is_his ? over : last;
}

}  // namespace sluice::runtime
