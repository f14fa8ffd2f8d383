// SPDX-License-Identifier: Apache-2.0
#include "small/leases.h"

#include "clock.h"

namespace sluice::gather {

namespace {

using abi::lease_state;

constexpr unsigned least_patience(lease_kind kind) {
  return kind == lease_kind::read ? core::gather_begin : core::strict_begin;
}

std::atomic<unsigned>& patience_of(lease_kind kind) {
  return mine->patience[static_cast<unsigned>(kind)];
}

struct claimed {
  bool is_ours = false;
  unsigned lease = 0;
  std::uint64_t word = 0;
};

/// A row that nobody has. None: all are taken, or nobody keeps them.
claimed claim_row(int fd, lease_kind kind) {
  std::uint32_t const pid = stage.fork_page->pid;
  abi::lease_head const& head = head_of(kind);
  bool const is_known =
      pid != 0 && stage.pid_space != 0 && stage.pid_space == head.pid_space.load();
  if (!is_known || !abi::is_kept(head, coarse_tick())) return {};
  bool const is_read = kind == lease_kind::read;
  unsigned const first = is_read ? 0 : abi::read_leases;
  unsigned const rows = is_read ? abi::read_leases : abi::write_leases;
  for (unsigned i = 0; i < rows; ++i) {
    unsigned const lease = first + (pid + static_cast<unsigned>(fd) + i) % rows;
    std::uint64_t seen = row_of(lease).word.load();
    if (abi::state_of(seen) != lease_state::free) continue;
    std::uint64_t const word = abi::lease_word(pid, static_cast<unsigned>(fd),
                                               abi::count_of(seen) + 1, lease_state::asked);
    if (row_of(lease).word.compare_exchange_strong(seen, word)) return {true, lease, word};
  }
  return {};
}

/// Whoever gets it ends it.
asked_row take_asked(int fd) {
  asked_row const a = asked_for(fd);
  unsigned row = a.lease + 1;
  if (!a.is_there || !mine->asked[place_of(fd)].row.compare_exchange_strong(row, 0)) return {};
  mine->leases_asked.fetch_sub(1);
  return a;
}

}  // namespace

unsigned patience(lease_kind kind) {
  return std::max(patience_of(kind).load(std::memory_order_relaxed), least_patience(kind));
}

bool makes_habit(int fd, ssize_t n, std::uint64_t small, lease_kind kind) {
  auto const bytes = static_cast<std::uint64_t>(n);
  return habit_of(fd).wrote(fd, bytes <= small ? bytes : core::most_piece + 1, patience(kind));
}

void learn(lease_kind kind, unsigned answered) {
  patience_of(kind).store(core::patience_after(patience(kind), answered, least_patience(kind)));
}

std::uint32_t* futex_of(abi::lease_row& row) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<std::uint32_t*>(&row.word);
}

void ring_bell(abi::lease_head& head) {
  head.bell.fetch_add(1);
  sys::futex_wake(&head.bell, ~0u);
}

bool ask_for_lease(int fd, lease_kind kind) {
  asked_lease& asked = mine->asked[place_of(fd)];
  unsigned none = 0;
  if (!asked.row.compare_exchange_strong(none, asked_lease::reserved)) return false;
  claimed const c = claim_row(fd, kind);
  if (c.is_ours) mine->leases_asked.fetch_add(1);
  asked.word.store(c.word);
  asked.row.store(c.is_ours ? c.lease + 1 : 0);
  if (c.is_ours) ring_bell(head_of(kind));
  return c.is_ours;
}

asked_row asked_for(int fd) {
  asked_lease const& asked = mine->asked[place_of(fd)];
  unsigned const row = asked.row.load();
  std::uint64_t const word = asked.word.load();
  bool const is_its =
      row != 0 && row != asked_lease::reserved && abi::fd_of(word) == static_cast<unsigned>(fd);
  return is_its ? asked_row{true, row - 1, word} : asked_row{};
}

asked_answer take_answer(int fd, asked_row const& a) {
  std::uint64_t const now = row_of(a.lease).word.load(std::memory_order_acquire);
  bool const is_open = now == a.word && abi::is_kept(head_of(kind_of(a.lease)), coarse_tick());
  if (is_open) return {};
  asked_row const taken = take_asked(fd);
  bool const is_held = now == abi::with(taken.word, lease_state::held);
  return {taken.is_there, taken.is_there && is_held, taken};
}

lease_state mark_ended(unsigned lease, std::uint64_t word) {
  abi::lease_row& row = row_of(lease);
  std::uint64_t seen = row.word.load();
  while (abi::with(seen, lease_state::free) == abi::with(word, lease_state::free)) {
    lease_state const now = abi::state_of(seen);
    bool const is_for_ring = now == lease_state::broken && kind_of(lease) == lease_kind::write;
    if (now == lease_state::free || now == lease_state::ended || is_for_ring) return now;
    bool const has_keeper = now == lease_state::asked || now == lease_state::held;
    lease_state const next = has_keeper ? lease_state::ended : lease_state::free;
    if (row.word.compare_exchange_weak(seen, abi::with(seen, next))) return now;
  }
  return lease_state::free;
}

/// No call waits longer for the keeper: after a second nobody meets the lease.
void end_read_lease(unsigned lease, std::uint64_t word) {
  lease_state const was = mark_ended(lease, word);
  if (was == lease_state::broken) {
    if (abi::segment* const s = stage.active.load(std::memory_order_relaxed); s != nullptr)
      s->buffer[static_cast<unsigned>(abi::buffer::breaks)].fetch_add(1);
  }
  if (was != lease_state::asked && was != lease_state::held) return;
  ring_bell(head_of(lease_kind::read));
  abi::lease_row& row = row_of(lease);
  std::uint64_t const ended = abi::with(word, lease_state::ended);
  constexpr std::int64_t most_ns = 1'000'000'000;
  std::int64_t const until_ns = now_ns() + most_ns;
  while (row.word.load() == ended && abi::is_kept(set->reads->head, coarse_tick()) &&
         now_ns() < until_ns)
    sys::futex_wait(futex_of(row), static_cast<std::uint32_t>(ended), until_ns, ~0u);
}

void forget_lease(int fd) {
  asked_row const taken = take_asked(fd);
  if (!taken.is_there) return;
  learn(kind_of(taken.lease), 0);
  if (kind_of(taken.lease) == lease_kind::read)
    end_read_lease(taken.lease, taken.word);
  else
    end_unused_write_lease(taken.lease, taken.word);
}

void forget_leases() {
  if (mine->leases_asked.load(std::memory_order_relaxed) == 0) return;
  for (asked_lease const& asked : mine->asked)
    if (asked.row.load() != 0) forget_lease(static_cast<int>(abi::fd_of(asked.word.load())));
}

void before_own_lease(int fd) {
  if (may_look() && has_place(fd)) forget_lease(fd);
}

bool has_leases() { return may_look() && (set->read_targets | set->strict_targets) != 0; }

namespace {

/// is(row, state, its number) is true of one.
template <class Is>
bool is_any_row(Is const& is) {
  if (!has_leases()) return false;
  unsigned const first = set->read_targets != 0 ? 0 : abi::read_leases;
  unsigned const last = set->rings != nullptr ? all_leases : abi::read_leases;
  for (unsigned lease = first; lease < last; ++lease)
    if (is(row_of(lease), abi::state_of(row_of(lease).word.load()), lease)) return true;
  return false;
}

}  // namespace

bool may_be_leased() {
  return is_any_row([](abi::lease_row const&, lease_state s, unsigned) {
    return s != lease_state::free && s != lease_state::refused;  // of one asked for, too
  });
}

// A row that is asked for does not name its file yet, and one that is free names its last.
bool may_be_leased(file const& f, bool or_was) {
  return f.is_regular && is_any_row([&](abi::lease_row const& row, lease_state s, unsigned lease) {
           bool const is_its = row.device.load() == f.device && row.inode.load() == f.inode;
           if (s == lease_state::asked && !is_its)
             return abi::is_kept(head_of(kind_of(lease)), coarse_tick());
           return is_its && (or_was || s != lease_state::free);
         });
}

}  // namespace sluice::gather
