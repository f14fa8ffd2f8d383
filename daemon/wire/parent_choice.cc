// SPDX-License-Identifier: Apache-2.0
#include "wire/parent_choice.h"

#include <algorithm>

namespace sluice::wire {

void parent_choice::step(std::int64_t now_ns) {
  at_ = (at_ + 1) % addresses_;
  walked_at_ = now_ns;
  lacking_since_ = 0;
  if (!visiting_ || at_ != home_) return;
  visiting_ = false;  // at home again, and nobody better was found
  wait_ns_ = std::min(wait_ns_ * 2, longest_visit_ns);
}

bool parent_choice::welcomed(bool lacks_pool, std::int64_t now_ns) {
  if (visiting_ && lacks_pool && at_ > home_) {
    step(now_ns);
    return false;
  }
  visiting_ = false;
  if (!lacks_pool) {
    lacking_since_ = 0;
    wait_ns_ = first_visit_ns;
  } else if (lacking_since_ == 0) {
    lacking_since_ = now_ns;
  }
  return true;
}

bool parent_choice::leaves(bool lost, std::int64_t now_ns) {
  if (addresses_ < 2) return false;
  if (walked_at_ == 0) walked_at_ = now_ns;
  if (!lost) {
    walked_at_ = now_ns;
    std::int64_t const spread = static_cast<std::int64_t>(seed_ % 1024) * wait_ns_ / 1024;
    if (lacking_since_ == 0 || now_ns - lacking_since_ < wait_ns_ + spread) return false;
    visiting_ = true;
    home_ = at_;
  } else if (now_ns - walked_at_ < walk_every_ns) {
    return false;
  }
  step(now_ns);
  return true;
}

}  // namespace sluice::wire
