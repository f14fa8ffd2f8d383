// SPDX-License-Identifier: Apache-2.0
// Whose jobs are looked at next. A user can fill all process slots of all his jobs, and to look
// them up takes many steps. So each owner of jobs has rounds of his own through his jobs, and
// owners take turns: what one has delays others by a step for each of their turns.
// What stays true: who is due comes before anybody comes twice; a look that is wanted meanwhile
// begins nothing anew, and follows the round that is under way. Pure: time is an argument.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace sluice::node {

class census_rounds {
 public:
  /// Owners of jobs. Those who are new are due, others are forgotten.
  void set_owners(std::set<uid_t> const& all) {
    std::erase_if(rows_, [&](auto const& row) { return !all.contains(row.first); });
    for (uid_t const owner : all) rows_.try_emplace(owner);
  }

  /// Whose turn it is: he goes on with his round, or begins one. A round begins `every_ns` after
  /// the one before it began, or at once when it is wanted. None: nobody is due.
  std::optional<uid_t> next(std::int64_t now_ns, std::int64_t every_ns) {
    auto at = rows_.upper_bound(last_);
    for (std::size_t tries = rows_.size(); tries > 0; --tries, ++at) {
      if (at == rows_.end()) at = rows_.begin();
      row& r = at->second;
      bool const begins =
          !r.is_under_way && (!r.began_ns || r.is_wanted || now_ns - *r.began_ns >= every_ns);
      if (begins) r = {.began_ns = now_ns, .is_under_way = true};
      if (r.is_under_way) return last_ = at->first;
    }
    return std::nullopt;
  }

  /// All his jobs have been looked at.
  void finish(uid_t owner) {
    if (auto const at = rows_.find(owner); at != rows_.end()) at->second.is_under_way = false;
  }

  /// Of all owners.
  void want() {
    for (auto& [owner, r] : rows_) r.is_wanted = true;
  }

 private:
  struct row {
    std::optional<std::int64_t> began_ns = {};
    bool is_under_way = false, is_wanted = false;
  };
  std::map<uid_t, row> rows_;
  uid_t last_ = 0;
};

}  // namespace sluice::node
