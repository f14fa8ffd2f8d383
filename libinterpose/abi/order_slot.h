// SPDX-License-Identifier: Apache-2.0
// How to ask the journal's daemon: claim a slot of the board, fill it, post it, wake the daemon if
// it dozes, look at the word. The askers are stages, and the node's daemon before it syncs what a
// job wrote. Waiting, and the action when nobody answers, is left to each asker.
// Must stay true: a result counts only for the asker that swaps done -> free itself.
#pragma once

#include "abi/order_area.h"

namespace sluice::abi {

constexpr order_slot_state state_in(std::uint32_t word) {
  return static_cast<order_slot_state>(word & 7);
}

/// Asked, and not answered.
constexpr bool is_open(std::uint32_t word) {
  order_slot_state const is = state_in(word);
  return is == order_slot_state::posted || is == order_slot_state::taken ||
         is == order_slot_state::held;
}

inline bool swap(order_slot& s, std::uint32_t user, order_slot_state from, order_slot_state to) {
  std::uint32_t seen = word_of(user, from);
  return s.word.compare_exchange_strong(seen, word_of(user, to));
}

/// A daemon is there and takes requests. A clock of another time namespace says nothing about it.
inline bool heart_beats(order_header const& h, std::int64_t at_ns) {
  std::int64_t const age_ns = at_ns - static_cast<std::int64_t>(h.heart_ns.load());
  return h.incarnation.load() != 0 && age_ns <= order_silence_ns && age_ns >= -order_silence_ns;
}

/// A free slot, made the caller's; null when there is none. `user` tells him from who has it later.
inline order_slot* claim_slot(order_area& a, std::uint32_t tid, std::uint32_t& user) {
  for (unsigned i = 0; i < order_slots; ++i) {
    order_slot& s = a.slot[(tid * 7 + i) % order_slots];
    std::uint32_t seen = s.word.load();
    if (state_in(seen) != order_slot_state::free) continue;
    user = ((seen >> 3) + 1) & 0x1fffffff;
    if (!s.word.compare_exchange_strong(seen, word_of(user, order_slot_state::claimed))) continue;
    s.tid.store(tid);
    return &s;
  }
  return nullptr;
}

/// What is asked, as the slot has it.
struct order_question {
  std::uint32_t kind, pid;
  int fd;
  std::uint64_t device, inode;
};

/// False: it is not the caller's any more, nothing was asked. `must_wake`: the doorbell is a futex
/// on which the daemon sleeps.
inline bool post(order_area& a, order_slot& s, std::uint32_t user, order_question const& q,
                 std::int64_t at_ns, bool& must_wake) {
  s.since_ns = static_cast<std::uint64_t>(at_ns);
  s.kind = q.kind;
  s.pid = q.pid;
  s.fd = q.fd;
  s.device = q.device;
  s.inode = q.inode;
  s.result = 0;
  s.eager = 0;
  if (!swap(s, user, order_slot_state::claimed, order_slot_state::posted)) return false;
  a.head.doorbell.fetch_add(1);
  must_wake = a.head.dozing.load() != 0 && a.head.dozing.exchange(0) != 0;
  return true;
}

/// Nobody is waited for any more. False: the word is not `seen` any more.
inline bool leave(order_slot& s, std::uint32_t user, std::uint32_t seen) {
  order_slot_state const is = state_in(seen);
  bool const is_posted = is == order_slot_state::posted;
  return swap(s, user, is, is_posted ? order_slot_state::free : order_slot_state::abandoned);
}

}  // namespace sluice::abi
