// SPDX-License-Identifier: Apache-2.0
// Puts a policy together from the parts a parent sends. Parts of one text come in order over one
// connection; one that does not follow is ignored. What stays true: one text at a time and never
// more than a megabyte is kept, and a text is whole only when its hash is the one announced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::runtime {

class policy_parts {
 public:
  static constexpr std::uint32_t most_bytes = 1u << 20;

  /// The whole text, when this part was the last one missing.
  std::optional<std::string> add(std::uint64_t hash, std::uint32_t total_bytes,
                                 std::uint32_t offset, std::string const& text);

 private:
  std::uint64_t hash_ = 0;
  std::uint32_t total_ = 0;
  std::string text_;
};

}  // namespace sluice::runtime
