// SPDX-License-Identifier: Apache-2.0
// Chooses one of several addresses. A child stays with a parent that answers, so that one that
// comes back disturbs nobody. But a fault may divide the children. Then no parent has most of them,
// and the pool of the capacity belongs to nobody, for ever. So a child whose parent lacks the pool
// visits the others now and then. It stays with one that has the pool, or that comes earlier in the
// list: all meet at one. Pure: time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::wire {

class parent_choice {
 public:
  static constexpr std::int64_t walk_every_ns = 500'000'000;     // while nobody answers
  static constexpr std::int64_t first_visit_ns = 4'000'000'000;  // twice that, by `seed`
  static constexpr std::int64_t longest_visit_ns = 60'000'000'000;

  /// `seed` spreads the visits of many children over time.
  parent_choice(std::size_t addresses, std::uint64_t seed) : addresses_(addresses), seed_(seed) {}

  /// The parent we are at says hello. False: not the one to stay with, go on at once.
  bool welcomed(bool lacks_pool, std::int64_t now_ns);
  /// True: go to the next address. `lost`: no parent answers.
  bool leaves(bool lost, std::int64_t now_ns);

 private:
  void step(std::int64_t now_ns);

  std::size_t addresses_, at_ = 0, home_ = 0;
  std::uint64_t seed_;
  bool visiting_ = false;
  std::int64_t walked_at_ = 0;
  std::int64_t lacking_since_ = 0;  // 0: the parent has the pool, or does not need one
  std::int64_t wait_ns_ = first_visit_ns;
};

}  // namespace sluice::wire
