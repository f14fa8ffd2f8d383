// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a TCP connection, and how many connections each may have at once.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/owners.h"

namespace sluice::runtime {

struct http_peer {
  std::string name;          // `uid 1000` of an owner on this machine, else an address
  bool is_operator = false;  // root of this machine, or the user whose daemon this is
};

/// None: it has gone. On this machine the kernel is asked for the uid; where it does not say, all
/// that come from one address are one peer.
std::optional<http_peer> peer_of(int socket, owner_lookup const& owner_of);

/// Places for connections, one thread each. What stays true: a peer has at most `most_of_one`
/// places, and only one more once half of all are taken, so few peers do not keep out the others.
/// Operators are not bounded.
class peer_places {
 public:
  static constexpr std::size_t most_of_one = 8;
  explicit peer_places(std::size_t all) : all_(all) {}

  /// False: it has its places. True: leave() ends it.
  bool enter(http_peer const& who);
  void leave(http_peer const& who);

 private:
  std::size_t const all_;
  std::mutex lock_;  // of all below
  std::map<std::string, std::size_t> taken_;
  std::size_t sum_ = 0;
};

}  // namespace sluice::runtime
