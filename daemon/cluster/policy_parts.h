// SPDX-License-Identifier: Apache-2.0
// Puts a policy together from the parts a parent sends. Parts come in order over one connection;
// anything else begins anew. What stays true: never more than a megabyte is kept, and a text is
// whole only when its hash is the one announced.
#pragma once

#include <optional>
#include <string>

#include "wire/message.h"

namespace sluice::cluster {

class policy_parts {
 public:
  /// The text, when this part was the last one missing.
  std::optional<std::string> add(wire::policy_part const& part);

 private:
  std::uint64_t hash_ = 0;
  std::string text_;
};

}  // namespace sluice::cluster
