// SPDX-License-Identifier: Apache-2.0
#include "waiters.h"

#include <signal.h>

#include "clock.h"
#include "core/left_wait.h"
#include "readable.h"
#include "state.h"
#include "sys.h"

namespace sluice::waiters {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Of the wait that the thread showed last.
thread_local constinit std::uintptr_t last_frame __attribute__((tls_model("initial-exec"))) = 0;

// The last tickets that settle_own() gave back.
constexpr unsigned known_settled = 8;
struct settled_tickets {
  std::uint32_t count;
  std::uint64_t start[known_settled];
};
thread_local constinit settled_tickets settled __attribute__((tls_model("initial-exec"))) = {};

core::signal_stack stack_of_signals() {
  stack_t now = {};
  if (sys::failed(sys::call(SYS_sigaltstack, 0, sys::as_long(&now)))) return {};
  return {reinterpret_cast<std::uintptr_t>(now.ss_sp), now.ss_size,
          (now.ss_flags & SS_ONSTACK) != 0};
}

// What the thread pointer points to lies at the end of the stack of a thread, but not of the first.
// Only of one that has joined.
core::given_stacks stacks_of_thread() {
  bool const is_first = self.tid == stage.fork_page->pid;
  auto const end = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  return {known.stack_limit, is_first ? 0 : end};
}

// In a common shard another may have shown itself meanwhile. A child that a handler forked shows
// nothing before it joins: its wait is its parent's.
bool is_own(abi::waiter const& record) {
  return joined() && (self.owned || record.tid.load(relaxed) == self.tid);
}

}  // namespace

void show(wait const& w, core::ticket const& t) {
  if (!joined()) return;
  abi::waiter& to = self.counters->waiting;
  bool const is_made = (w.of.manner & visit::made) != 0;
  // A handler that comes in between sees no record, or a whole one with its frame.
  to.channel.store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  last_frame = w.frame;
  to.tid.store(self.tid, relaxed);
  to.since_ns.store(static_cast<std::uint64_t>(w.since_ns), relaxed);
  to.ticket.store(t.start, relaxed);
  to.amount.store(t.cost, relaxed);
  to.call.store(static_cast<std::uint32_t>(w.of.id) | (is_made ? abi::waiter::is_made : 0),
                relaxed);
  to.slot.store(stage.fork_page->slot.load(relaxed), relaxed);
  to.channel.store(w.channel + 1, std::memory_order_release);
}

void hide() {
  abi::waiter& record = self.counters->waiting;
  if (is_own(record)) record.channel.store(0, std::memory_order_release);
}

void show_leaving() {
  abi::waiter& record = self.counters->waiting;
  if (is_own(record)) record.channel.fetch_or(abi::waiter::may_have_left);
}

void give_back(core::bucket& b, std::uint64_t units) {
  if (units != 0 && core::refund(b, units, now_ns())) sys::futex_wake(&core::futex_word(b), ~0u);
}

core::bucket* bucket_of(abi::segment& s, std::uint32_t taken) {
  std::uint32_t const channel = (taken & ~abi::waiter::may_have_left) - 1;
  return channel < core::max_channels ? &s.bucket[channel] : nullptr;
}

std::uint64_t write_off(core::bucket& b, abi::waiter const& record, std::int64_t at_ns) {
  if ((record.call.load(relaxed) & abi::waiter::is_made) != 0) return 0;
  return core::write_off(b, record.ticket.load(relaxed), record.amount.load(relaxed), at_ns);
}

void settle_left(abi::segment& s, abi::waiter const& record, std::uint32_t taken) {
  if (core::bucket* const b = bucket_of(s, taken)) give_back(*b, write_off(*b, record, now_ns()));
}

bool settle_own(abi::segment& s, std::uintptr_t frame, std::int64_t at_ns) {
  abi::waiter& record = self.counters->waiting;
  std::uint32_t const taken = record.channel.load(relaxed);
  if (taken == 0 || !self.owned || !joined()) return false;
  if (!core::is_over(last_frame, frame, stack_of_signals(), stacks_of_thread())) return false;
  std::uint64_t const ticket = record.ticket.load(relaxed);
  core::bucket* const b = bucket_of(s, record.channel.exchange(0));
  std::uint64_t const units = b == nullptr ? 0 : write_off(*b, record, at_ns);
  if (units == 0) return false;
  settled.start[settled.count % known_settled] = ticket;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++settled.count;
  give_back(*b, units);
  return true;
}

std::uint32_t settled_so_far() { return settled.count; }

bool was_settled(std::uint32_t before, core::ticket const& t) {
  std::uint32_t const more = settled.count - before;
  if (more > known_settled) return true;
  for (std::uint32_t i = 0; i < more; ++i)
    if (settled.start[(before + i) % known_settled] == t.start) return true;
  return false;
}

}  // namespace sluice::waiters
