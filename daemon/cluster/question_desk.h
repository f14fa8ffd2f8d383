// SPDX-License-Identifier: Apache-2.0
// Questions that users ask at the sockets of nodes. A cluster answers a few each turn, as if they
// had been asked here, but a user of another host is never an operator; a relay passes them on
// under ids of its own. What stays true: neither a node nor a user has all places.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/shared_places.h"
#include "local/local.h"
#include "wire/message.h"
#include "wire/socket.h"

namespace sluice::cluster {

class question_desk {
 public:
  /// Places for questions that wait here, of which a user has so many of one child's at most; and
  /// for those that a relay has passed on. The last ones are for users who have none.
  static constexpr std::size_t most_kept = 256;
  static constexpr shared_places of_a_child = {8, 4, 2}, of_a_relay = {most_kept, 32, 32};

  using sender = std::function<void(std::uint32_t child, wire::answer const&)>;
  explicit question_desk(sender to) : send_(std::move(to)) {}

  /// A question of a child's user. The one to be passed on, under our id, where `is_relay` and the
  /// parent `is_heard`; else it waits here, or was refused.
  std::optional<wire::question> take(wire::parent_socket::incoming const& from, wire::question& q,
                                     bool is_relay, bool is_heard, std::int64_t now);
  /// It could not be passed on.
  void take_back(std::uint64_t id);
  /// The parent's answer.
  void hear(wire::answer& a);
  void forget_old(std::int64_t now);

  bool is_idle() const { return asked_.empty(); }
  /// Some of those that wait. `serve`: who asks, text and the node's name to an answer's text;
  /// empty: reply() will say it.
  using server = std::function<std::string(local::peer const& who, std::string const& text,
                                           std::string const& through)>;
  void answer_some(server const& serve, std::int64_t now);
  /// A question with this ticket waits for reply().
  bool is_waiting(std::uint64_t ticket) const;
  void reply(std::uint64_t ticket, std::string const& text);

 private:
  void refuse(std::uint32_t child, std::uint64_t id, std::string const& why);
  bool has_place(std::uint32_t child, std::uint32_t uid) const;

  struct asked {
    std::uint32_t child;
    std::string through;
    wire::question q;
  };
  struct later {
    std::uint64_t ticket, id;
    std::uint32_t child, uid;
    std::int64_t asked_at;
  };
  struct passed {
    std::uint64_t ours, theirs;
    std::uint32_t child, uid;
    std::int64_t asked_at;
  };
  sender send_;
  std::deque<asked> asked_;
  std::vector<later> later_;
  std::vector<passed> passed_on_;
  std::uint64_t last_id_ = 0, last_ticket_ = 0;
};

}  // namespace sluice::cluster
