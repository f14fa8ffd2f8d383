// SPDX-License-Identifier: Apache-2.0
#include "journal/lone.h"

#include <algorithm>

namespace sluice::journal {

namespace {

constexpr std::uint64_t usual_ns = 400'000;  // of a flush that nobody has measured

}  // namespace

void lone_costs::cost::note(std::uint64_t now_ns, std::uint64_t ns) {
  if (!is_known(now_ns)) count_ = 0;
  last_[count_++ % kept] = ns;
  if (count_ == 2 * kept) count_ = kept;
  at_ns_ = now_ns;
}

std::uint64_t lone_costs::cost::ns() const {
  return *std::min_element(last_, last_ + std::min(count_, kept));
}

bool lone_costs::is_log_quicker(std::uint64_t now_ns) const {
  if (!home_.is_known(now_ns) || !log_.is_known(now_ns)) return false;
  return home_.ns() > log_.ns() + log_.ns() / 4;
}

bool lone_costs::is_look_dear(std::uint64_t now_ns, std::uint64_t look_ns) const {
  return look_ns > (home_.is_known(now_ns) ? std::max(home_.ns(), usual_ns) : usual_ns) / 4;
}

}  // namespace sluice::journal
