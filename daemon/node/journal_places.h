// SPDX-License-Identifier: Apache-2.0
// Who has the room that all journals of a node have together. What stays true: the journals of one
// owner take as many places as he may have served, however many of his uids have left one; so he
// keeps out nobody else.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/owners.h"
#include "node/journal_words.h"

namespace sluice::node {

class journal_places {
 public:
  explicit journal_places(owner_lookup owner_of) : owner_of_(std::move(owner_of)) {}

  /// A journal of that user which takes room.
  void take(uid_t user) { ++of_owner_[owner(user)]; }
  std::uint64_t of_owner(uid_t user) const {
    auto const at = of_owner_.find(owner(user));
    return at == of_owner_.end() ? 0 : at->second;
  }
  std::uint64_t taken() const {
    std::uint64_t sum = 0;
    for (auto const& [who, count] : of_owner_) sum += std::min(count, most_journals_of_an_owner);
    return sum;
  }
  /// One more of his would be more than an owner has.
  bool has_all(uid_t user) const { return of_owner(user) >= most_journals_of_an_owner; }

 private:
  uid_t owner(uid_t user) const { return owner_by(owner_of_, user); }

  owner_lookup owner_of_;
  std::map<uid_t, std::uint64_t> of_owner_;
};

}  // namespace sluice::node
