// SPDX-License-Identifier: Apache-2.0
// Bytes <-> messages. decode() never crashes, hangs, or allocates more than the bytes of the
// message back up; it accepts a message whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "wire/message.h"

namespace sluice::wire {

inline constexpr std::size_t most_bytes = 1u << 20;       // of one message on a relay's port
inline constexpr std::size_t most_bytes_node = 1u << 16;  // on a node's

/// What a report lists. Each supply may be timed as well.
struct report_size {
  std::size_t supplies = 0, streams = 0, histograms = 0, bins = 0;
};
/// At most, by messages.def.
std::size_t bytes_of(report_size const& r);

/// In the report of a node, beside so many supplies. One with as many may lack some.
std::size_t most_streams(std::size_t supplies);
/// The job does something there, or wants to.
bool is_at_work(stream_report const& s);
/// Whether one stream more, whatever it says, would have had room.
bool has_room_left(report const& r, role sender);

/// Replaces `out`. Values that the wire does not know are made to fit (rates cut, names shortened,
/// bytes that are not printable shown as '?'), so decode() accepts what this wrote unless it is
/// longer than the bounds above. Positions must be right: streams[i].supply < supplies.size().
void encode(envelope const& e, message const& m, std::vector<std::byte>& out);

struct decoded {
  envelope head;
  message body;
  char const* refused = nullptr;  // why, in words for a log; null: fine
  bool other_major = false;       // of another major version: answer with an error message
};
decoded decode(std::span<std::byte const> bytes);

}  // namespace sluice::wire
