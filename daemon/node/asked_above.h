// SPDX-License-Identifier: Apache-2.0
// Questions of a login node's users that the cluster answers. They are sent up with the uid that
// the kernel named. The client gets the answer when it arrives, or an error after a while. The loop
// waits for nobody. A user has so many questions on the way at most, for one goes on when its
// client is gone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/owners.h"
#include "local/local.h"
#include "runtime/uplink.h"

namespace sluice::node {

class asked_above {
 public:
  static constexpr std::size_t most_open = 64, most_of_a_user = 8;
  static constexpr std::size_t kept_open = most_open / 8;  // for users who have none

  /// `owner_of`: whose a question is.
  explicit asked_above(owner_lookup owner_of = {}) : owner_of_(std::move(owner_of)) {}

  /// Returns local::later(). Throws when the parent cannot be asked.
  nlohmann::json ask(runtime::uplink& up, local::peer const& who, nlohmann::json const& request,
                     std::int64_t now_ns);
  void hear(wire::answer&& a);

  struct told {
    std::uint64_t ticket;
    std::string text;
  };
  /// What clients are to be told now.
  std::vector<told> take(std::int64_t now_ns);

 private:
  struct open_question {
    std::uint64_t id, ticket;
    std::int64_t until_ns;
    uid_t owner;
  };
  owner_lookup owner_of_;
  std::vector<open_question> open_;
  std::vector<told> answered_;
  std::uint64_t last_id_ = 0;
};

}  // namespace sluice::node
