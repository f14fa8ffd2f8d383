// SPDX-License-Identifier: Apache-2.0
// Bytes <-> messages. decode() never crashes, hangs, or allocates by a number that the bytes do not
// back up; it accepts a message whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "wire/message.h"

namespace sluice::wire {

inline constexpr std::size_t most_bytes = 1u << 20;       // of one message on a relay's port
inline constexpr std::size_t most_bytes_node = 1u << 16;  // on a node's

void encode(envelope const& e, message const& m, std::vector<std::byte>& out);

struct decoded {
  envelope head;
  message body;
  char const* refused = nullptr;  // why, in words for a log; null: fine
  bool other_major = false;       // of another major version: answer with an error message
};
decoded decode(std::span<std::byte const> bytes);

}  // namespace sluice::wire
