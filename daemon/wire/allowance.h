// SPDX-License-Identifier: Apache-2.0
// How much one child may say. What is beyond it is dropped before it is read, so that a child that
// floods takes neither time nor memory from the others. No honest child comes near it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "wire/codec.h"

namespace sluice::wire {

/// All counts in longest messages of the role, L: 64 KiB of a node, 1 MiB of a relay. An honest
/// child sends at most 50 early reports a second (20 ms apart) and two reports a cycle, of one L.
/// Five times that refills: 256 L a second and 10 L a cycle. A message costs its bytes and L/128
/// more. With a cycle of 100 ms a node has 22 MiB/s, or 37,000 letters of gates (104 bytes) a
/// second: some 6,000 come from one node when a controller is busy with nothing else. What a child
/// says while its parent is stopped comes at once: in 20 s, after which it leaves, no more than
/// four seconds of what refills.
class allowance {
 public:
  struct terms {
    std::int64_t cycle_ns = 100'000'000;         // of reports
    std::int64_t most_ahead_ns = 4'000'000'000;  // of what refills, at once
  };
  /// False: that message is too much, and costs nothing.
  bool spend(role who, std::size_t bytes, terms const& t, std::int64_t now_ns) {
    std::int64_t const from_ns = std::max(paid_until_ns_, now_ns);
    if (from_ns - now_ns > t.most_ahead_ns) return false;
    paid_until_ns_ = from_ns + cost_ns(who, bytes, t.cycle_ns);
    return true;
  }

 private:
  static std::int64_t cost_ns(role who, std::size_t bytes, std::int64_t cycle_ns) {
    auto const longest = static_cast<double>(who == role::node ? most_bytes_node : most_bytes);
    double const a_second = 256 + 10e9 / static_cast<double>(std::max<std::int64_t>(cycle_ns, 1));
    double const lengths = static_cast<double>(bytes) / longest + 1.0 / 128;
    return static_cast<std::int64_t>(1e9 * lengths / a_second);
  }

  std::int64_t paid_until_ns_ = 0;
};

}  // namespace sluice::wire
