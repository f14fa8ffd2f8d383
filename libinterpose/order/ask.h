// SPDX-License-Identifier: Apache-2.0
// Shared by an fsync that waits (order/sync.cc) and one that does not (order/barriers.cc): slots of
// the board of requests, and how long a daemon counts as alive.
#pragma once

#include "abi/order_slot.h"
#include "order/notes.h"

namespace sluice::order {

using abi::order_slot;
using abi::state_in;
using abi::swap;
using slot_state = abi::order_slot_state;

inline constexpr std::int64_t slice_ns = 50'000'000;
// A heart that beats beside a loop that hangs: then we go on without it as well.
inline constexpr std::int64_t longest_ns = 60'000'000'000;

/// The daemon has not answered that user of the slot yet.
constexpr bool is_under_way(std::uint32_t word, std::uint32_t user) {
  return word >> 3 == user && abi::is_open(word);
}

bool heart_beats(std::int64_t at_ns);

/// A free slot, made ours; null when there is none. `user` tells us from who has it later.
order_slot* claim_slot(std::uint32_t& user);
/// False: it is not ours any more, nothing was asked.
bool post(order_slot& s, std::uint32_t user, std::uint32_t kind, int fd, file_now const& f);
/// Waits while the word is `seen`, for a moment. False: it is not worth it, nobody is there.
bool wait_a_slice(order_slot& s, std::uint32_t seen, std::int64_t since_ns, std::uint32_t bits);
/// False: it changed meanwhile.
bool give_up(order_slot& s, std::uint32_t user, std::uint32_t seen);

/// What came of asking. none: nobody answered.
struct answer {
  enum { none, done, native } what;
  int error;
};
/// Waits for the answer as long as somebody is there.
answer ask(abi::order_request kind, int fd, file_now const& f);

/// For a file of that device of which nobody has a descriptor. 0: nobody knows which device.
int sync_everything(std::uint64_t device);

}  // namespace sluice::order
