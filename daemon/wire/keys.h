// SPDX-License-Identifier: Apache-2.0
// CURVE keys on disk. DIR/secret (0600, own key pair, made by `sluice keys new NAME`),
// DIR/parent.pub (the public key of the parent), DIR/allowed (one line per peer: public key, name,
// role).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wire/message.h"

namespace sluice::wire {

using key = std::array<std::uint8_t, 32>;

struct allowed_peer {
  std::string name;
  role who;
};

struct security {
  std::string name;  // ours
  key public_key{}, secret_key{};
  key parent_key{};  // all zero: none given
  std::map<key, allowed_peer> allowed;
};

/// Throws a usage error that names file, line and remedy (modes, missing, malformed, zero keys).
security read_keys(std::string const& dir);

}  // namespace sluice::wire
