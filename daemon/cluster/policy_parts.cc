// SPDX-License-Identifier: Apache-2.0
#include "cluster/policy_parts.h"

#include <utility>

#include "policy/supply.h"

namespace sluice::cluster {

namespace {

constexpr std::size_t most_bytes = 1u << 20;

}  // namespace

std::optional<std::string> policy_parts::add(wire::policy_part const& part) {
  if (part.offset == 0) {
    text_.clear();
    hash_ = part.hash;
  }
  bool const follows = part.hash == hash_ && part.offset == text_.size();
  if (!follows || part.total_bytes > most_bytes ||
      text_.size() + part.text.size() > part.total_bytes) {
    text_.clear();
    hash_ = 0;
    return std::nullopt;
  }
  text_ += part.text;
  if (text_.size() < part.total_bytes) return std::nullopt;
  std::string whole = std::exchange(text_, {});
  hash_ = 0;
  if (policy::policy_hash(whole) != part.hash) return std::nullopt;
  return whole;
}

}  // namespace sluice::cluster
