// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy_parts.h"

#include <utility>

#include "policy/supply.h"

namespace sluice::runtime {

std::optional<std::string> policy_parts::add(std::uint64_t hash, std::uint32_t total_bytes,
                                             std::uint32_t offset, std::string const& text) {
  if (total_bytes > most_bytes || hash == 0) return std::nullopt;
  if (offset == 0) {
    hash_ = hash;
    total_ = total_bytes;
    text_.clear();
  }
  bool const follows =
      hash == hash_ && offset == text_.size() && text.size() <= total_ - text_.size();
  if (!follows) return std::nullopt;
  text_ += text;
  if (text_.size() != total_) return std::nullopt;
  total_ = 0;
  std::string whole = std::exchange(text_, {});
  if (policy::policy_hash(whole) != hash_) return std::nullopt;
  return whole;
}

}  // namespace sluice::runtime
