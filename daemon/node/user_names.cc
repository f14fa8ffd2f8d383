// SPDX-License-Identifier: Apache-2.0
#include "node/user_names.h"

namespace sluice::node {

namespace {

constexpr std::int64_t good_for_ns = 600'000'000'000;
constexpr std::size_t most_known = 10'000;

}  // namespace

std::string user_names::of(uid_t uid, std::int64_t now_ns) {
  auto const at = known_.find(uid);
  if (at != known_.end() && now_ns - at->second.asked_ns < good_for_ns) return at->second.name;
  if (known_.size() >= most_known) known_.clear();
  std::string name = ask_(uid);
  known_[uid] = {name, now_ns};
  return name;
}

}  // namespace sluice::node
