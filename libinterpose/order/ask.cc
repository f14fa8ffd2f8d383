// SPDX-License-Identifier: Apache-2.0
// A stage waits while the daemon's heart beats, for the disk may be slow: 2 s until it is taken,
// and 60 s in all.
#include "order/ask.h"

#include "clock.h"
#include "sys.h"

namespace sluice::order {

using abi::order_count;
using abi::order_request;

namespace {

constexpr std::int64_t untaken_ns = 2'000'000'000;

}  // namespace

bool heart_beats(std::int64_t at_ns) { return abi::heart_beats(durable.area->head, at_ns); }

order_slot* claim_slot(std::uint32_t& user) {
  auto const tid = joined() ? self.tid : static_cast<std::uint32_t>(sys::call(SYS_gettid));
  order_slot* const s = abi::claim_slot(*durable.area, tid, user);
  if (s == nullptr) count(order_count::no_slot);
  return s;
}

bool post(order_slot& s, std::uint32_t user, std::uint32_t kind, int fd, file_now const& f) {
  auto const pid =
      joined() ? stage.fork_page->pid : static_cast<std::uint32_t>(sys::call(SYS_getpid));
  bool must_wake = false;
  if (!abi::post(*durable.area, s, user, {kind, pid, fd, f.device, f.inode}, now_ns(), must_wake))
    return false;
  if (must_wake) sys::futex_wake(&durable.area->head.doorbell, ~0u);
  return true;
}

bool wait_a_slice(order_slot& s, std::uint32_t seen, std::int64_t since_ns, std::uint32_t bits) {
  std::int64_t const at_ns = now_ns();
  bool const is_posted = state_in(seen) == slot_state::posted;
  if (!heart_beats(at_ns) || at_ns - since_ns >= (is_posted ? untaken_ns : longest_ns))
    return false;
  sys::futex_wait(&s.word, seen, at_ns + slice_ns, bits);
  return true;
}

bool give_up(order_slot& s, std::uint32_t user, std::uint32_t seen) {
  if (!abi::leave(s, user, seen)) return false;
  count(order_count::silent);
  return true;
}

static answer wait_for(order_slot& s, std::uint32_t user, std::int64_t since_ns) {
  for (;;) {
    std::uint32_t const seen = s.word.load();
    if (seen == word_of(user, slot_state::done)) {
      std::int32_t const result = s.result.load();
      // Who swaps it free knows that nobody took the slot, and the result, away meanwhile.
      if (!swap(s, user, slot_state::done, slot_state::free)) return {answer::none, 0};
      if (abi::means_native(result)) return {answer::native, 0};
      return {answer::done, result};
    }
    if (!is_under_way(seen, user)) return {answer::none, 0};
    if (!wait_a_slice(s, seen, since_ns, ~0u) && give_up(s, user, seen)) return {answer::none, 0};
  }
}

answer ask(order_request kind, int fd, file_now const& f) {
  std::int64_t const since_ns = now_ns();
  if (!heart_beats(since_ns)) {
    count(order_count::absent);
    return {answer::none, 0};
  }
  std::uint32_t user = 0;
  order_slot* const s = claim_slot(user);
  if (s == nullptr || !post(*s, user, static_cast<std::uint32_t>(kind), fd, f))
    return {answer::none, 0};
  return wait_for(*s, user, since_ns);
}

}  // namespace sluice::order
