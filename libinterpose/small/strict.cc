// SPDX-License-Identifier: Apache-2.0
// Problem: a program that writes a few bytes at a time pays a system call for each, and what waits
// in its own memory is lost when it is killed, and hidden from whoever opens the file.
// Idea: where a target says "strict", small writes that follow one another wait in memory that a
// keeper shares (core/ring.h), a process of `sluice run`. The keeper holds the kernel's write lease
// for the file: whoever opens it waits until the keeper has written all of it. It does so every few
// milliseconds anyway, and when the program is gone.
// What stays true: whoever opens the file finds each byte of which a write was told that it is
// written, also when the program, or one of the two keepers, is killed. Only stat(2) by others may
// lag, for as long as a keeper sleeps between two looks. While a row is held the keeper alone
// writes to the file, so a call that needs it written waits for him; what comes of it is charged as
// what it is, one write. Where both keepers are dead the program does their work itself.
#include "small/strict.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/vfs.h>

#include "clock.h"
#include "loaded.h"
#include "meter.h"
#include "small/leases.h"

namespace sluice::gather {

namespace {

using abi::lease_state;

constexpr std::int64_t look_ns = 50'000'000;        // between two looks at who serves us
constexpr std::int64_t give_up_ns = 1'000'000'000;  // a successor is there in milliseconds

core::ring& ring_of(unsigned lease) {
  return set->rings->ring[(lease - abi::read_leases) % abi::write_leases];
}
abi::lease_head& head() { return head_of(lease_kind::write); }

lease_state state_now(unsigned lease, std::uint64_t word) {
  std::uint64_t const now = row_of(lease).word.load(std::memory_order_acquire);
  bool const is_ours = abi::with(now, lease_state::free) == abi::with(word, lease_state::free);
  return is_ours ? abi::state_of(now) : lease_state::free;
}

/// Somebody of the house that has our descriptor is there, or has died just now.
bool is_served(std::uint32_t house) {
  std::uint32_t const keeper = head().keeper.load(std::memory_order_acquire);
  return keeper != 0 && (keeper & abi::keeper_died) == 0 && set->rings->head.house.load() == house;
}

/// The kernel writes down that a keeper has died. It cannot where it could not read what to write.
bool has_ended(std::uint32_t pid) {
  constexpr long pidfd_open = 434;
  long const process = sys::call(pidfd_open, static_cast<long>(pid), 0);
  if (sys::failed(process)) return process == -ESRCH;
  pollfd p = {static_cast<int>(process), POLLIN, 0};
  timespec const now = {};
  bool const is_over = sys::call(SYS_ppoll, sys::as_long(&p), 1, sys::as_long(&now), 0, 0) == 1;
  sys::call(SYS_close, process);
  return is_over;
}

/// He hears of no lease any more, and the kernel lets whoever opens the file read on. If he is
/// stopped and not dead, he would write when he goes on. His pid is of our namespace.
void end_keeper() {
  std::uint32_t pid = head().keeper.load();
  if (pid == 0 || (pid & abi::keeper_died) != 0) return;
  undisturbed const quiet;  // who jumps out of a handler would leave it open
  bool const is_over = (!is_in_sandbox() && has_ended(pid)) ||
                       sys::call(SYS_kill, static_cast<long>(pid), SIGKILL) == -ESRCH;
  if (is_over) head().keeper.compare_exchange_strong(pid, abi::keeper_died);
}

/// It does not work, and a process that has changed its rights cannot end it. It may go on one day.
bool is_out_of_reach() {
  std::uint32_t const pid = head().keeper.load();
  return pid != 0 && (pid & abi::keeper_died) == 0 && !abi::is_kept(head(), coarse_tick()) &&
         sys::call(SYS_kill, static_cast<long>(pid), 0) == -EPERM;
}

/// False: nobody is going to do it. The caller may hold the lock of a slot; signals are blocked
/// then.
template <class Done>
bool await(core::ring& r, std::uint32_t house, Done const& is_done,
           std::int64_t until_ns = for_ever_ns) {
  ring_bell(head());
  for (std::int64_t gone_ns = 0;;) {
    std::uint32_t const seen = r.moves.load();
    if (is_done()) return true;
    std::int64_t const now = now_ns();
    if (is_served(house) && !is_out_of_reach())
      gone_ns = 0;
    else if (gone_ns == 0)
      gone_ns = now;
    if (now >= until_ns || (gone_ns != 0 && now - gone_ns > give_up_ns)) return is_done();
    if (gone_ns == 0 && !abi::is_kept(head(), coarse_tick())) end_keeper();
    sys::futex_wait(&r.moves, seen, now + look_ns, ~0u);
  }
}

/// Of the file, or of the position if nothing is appended to it.
std::uint64_t end_of(int fd) {
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (!sys::failed(flags) && (flags & O_APPEND) != 0) return sys::size_of(fd);
  return static_cast<std::uint64_t>(sys::call(SYS_lseek, fd, 0, SEEK_CUR));
}

/// What both keepers have left. One that was only stopped finds that it serves no more.
void do_their_work(int fd, unsigned lease, std::uint64_t word, std::uint32_t house) {
  std::uint32_t dead = abi::keeper_died;
  if (!head().keeper.compare_exchange_strong(dead, abi::keepers_gone) &&
      dead != abi::keepers_gone && is_served(house))
    return;
  std::uint64_t held = abi::with(word, lease_state::held);
  abi::lease_row& row = row_of(lease);
  if (!row.word.compare_exchange_strong(held, abi::with(word, lease_state::broken))) {
    std::uint64_t ended = abi::with(word, lease_state::ended);
    if (!row.word.compare_exchange_strong(ended, abi::with(word, lease_state::broken))) return;
  }
  core::ring& r = ring_of(lease);
  abi::write_begun& begun = set->rings->begun[lease - abi::read_leases];
  std::uint64_t at = begun.bytes.load() != 0 ? abi::begin_after(begun, end_of(fd)) : r.begin.load();
  begun.bytes.store(0);
  auto error = static_cast<int>(r.error.load());  // of an earlier one: the rest is lost already
  for (std::uint64_t const end = core::bytes_in(r); at < end && error == 0;) {
    std::uint64_t const from = at % core::ring::room;
    sent const s = send(fd, r.bytes + from, std::min(end - at, core::ring::room - from));
    at += s.bytes;
    error = s.error;
  }
  bool const has_lease = sys::call(SYS_fcntl, fd, F_GETLEASE) == F_WRLCK;
  if (has_lease) sys::call(SYS_fcntl, fd, F_SETLEASE, F_UNLCK);
  f_owner_ex const nobody = {F_OWNER_TID, 0};  // as of a new file
  if (has_lease) sys::call(SYS_fcntl, fd, F_SETOWN_EX, sys::as_long(&nobody));
  r.flushes.fetch_add(1);
  r.error.store(static_cast<std::uint32_t>(error));
  r.begin.store(at);
}

/// Somebody else's from now on, unless a thread of ours may still copy into its ring.
void free_row(unsigned lease, std::uint64_t word) {
  std::uint64_t broken = abi::with(word, lease_state::broken);
  if (ring_of(lease).is_taken.load() == 0)
    row_of(lease).word.compare_exchange_strong(broken, abi::with(word, lease_state::free));
}

/// One that is busy with a slow disk frees it later, and nothing of ours is in it.
void await_unanswered(unsigned lease, std::uint64_t word) {
  core::ring& r = ring_of(lease);
  ring_bell(head());
  for (std::int64_t const until_ns = now_ns() + 4 * look_ns; now_ns() < until_ns;) {
    std::uint32_t const seen = r.moves.load();
    if (state_now(lease, word) != lease_state::ended) return;
    sys::futex_wait(&r.moves, seen, until_ns, ~0u);
  }
}

/// The file has all that was accepted, or an error says why not, and the keeper's descriptor is
/// closed. The row is broken then, for its ring is to be looked at. False: only one that is out of
/// reach can bring it there, and the file is his until he does.
bool end_row(int fd, unsigned lease, std::uint64_t word, std::uint32_t house) {
  core::ring& r = ring_of(lease);
  lease_state const was = mark_ended(lease, word);
  if (was == lease_state::broken) count(abi::gather::breaks, 1);
  if (was == lease_state::asked) await_unanswered(lease, word);
  if (was == lease_state::asked) return true;
  auto const is_over = [&] { return state_now(lease, word) != lease_state::ended; };
  while (!is_over() && !await(r, house, is_over)) {
    if (is_out_of_reach()) return false;
    do_their_work(fd, lease, word, house);
  }
  return true;
}

/// What the keeper has written since it was last asked.
flushed collect(slot& s, core::ring const& r) {
  flushed f = {true, s.entry, 0, {}};
  std::uint64_t const begin = r.begin.load();
  std::uint32_t const flushes = r.flushes.load(), calls = r.calls.load();
  f.out = {begin - s.paid_bytes, static_cast<int>(r.error.load())};
  f.writes = flushes - s.paid_flushes;
  f.calls = calls - s.calls;
  s.paid_bytes = begin, s.paid_flushes = flushes, s.calls = calls;
  return f;
}

/// Few writes came since the last pause, again and again: it does not pay.
bool is_vain(slot& s, unsigned calls, unsigned few) {
  s.vain = calls < few ? s.vain + 1 : 0;
  return s.vain >= core::most_vain_flushes;
}

/// What is charged for what the keeper wrote by himself. False: it does not pay.
bool settle(slot& s, int fd, core::ring const& r) {
  flushed f;
  bool pays = true;
  {
    undisturbed const quiet;
    locked const alone(s.lock);
    bool const is_its = s.fd_after.load() == fd + 1 && s.is_for == use::strict;
    if (!is_its || &ring_of(s.lease) != &r) return true;
    unsigned const calls = s.calls;
    f = collect(s, r);
    f.out.error = 0;  // it is told when the row ends
    bool const is_of_tick = f.out.bytes < core::ring::due;
    pays = !is_vain(s, s.calls - calls, is_of_tick ? core::few_tick_writes : 0);
  }
  pay(f);
  return pays;
}

/// The keeper has written. False: it is to be let go.
bool make_room(slot& s, core::ring& r, std::uint32_t size) {
  auto const is_there = [&] {
    return core::is_shut(r) || core::bytes_in(r) + size <= r.begin.load() + r.room;
  };
  return await(r, s.holder, is_there) && !core::is_shut(r);
}

bool is_on_local_disk(int fd) {
  struct statfs where = {};
  if (sys::failed(sys::call(SYS_fstatfs, fd, sys::as_long(&where)))) return false;
  return std::any_of(std::begin(abi::leased_types), std::end(abi::leased_types),
                     [&](abi::leased_type const& t) { return where.f_type == t.magic; });
}

abi::gather look(int fd) {
  // A call on a copy would act on the file beside the keeper.
  if (!is_own(fd) || has_copies(fd)) return abi::gather::refused_shared;
  if (!is_on_local_disk(fd)) return abi::gather::refused_kind;
  file f;
  std::int64_t at = 0;
  return why_not_held(fd, f, at);
}

bool ask(int fd) {
  if (abi::gather const no = look(fd); no != abi::gather::count) {
    count(no, 1);
    return false;
  }
  if (slot_of(fd).fd_after.load() != 0) return false;
  bool const is_asked = ask_for_lease(fd, lease_kind::write);
  count(is_asked ? abi::gather::leases : abi::gather::refused_lease, 1);
  return is_asked;
}

/// Where the ring began when somebody waited for it in vain, plus one.
std::atomic<std::uint64_t>& stands_at(slot const& s) { return mine->stands_at[&s - mine->of]; }

bool begin_writing(slot& s, int fd, asked_row const& a) {
  auto const entry = static_cast<fd_entry>(entry_of_fd(fd));
  file const f = file_of(fd);
  undisturbed const quiet;
  locked const alone(s.lock);
  abi::lease_row const& row = row_of(a.lease);
  // Another descriptor has the place: what it remembers is its own.
  if (s.fd_after.load() != 0 || s.bytes.is_taken()) return false;
  if (row.device.load() != f.device || row.inode.load() != f.inode) return false;
  s.lease = a.lease, s.lease_word = abi::with(a.word, lease_state::held);
  s.holder = set->rings->head.house.load();
  s.calls = 0, s.paid_bytes = 0, s.paid_flushes = 0, s.paused_at = 0;
  stands_at(s).store(0);
  if (!begin_to_hold(s, fd, f, entry, use::strict)) return false;
  if (!has_copies(fd)) return true;
  core::shut(ring_of(a.lease));
  release(s, fd, 0);
  return false;
}

/// The keeper has answered, or has not yet.
void look_at_asked(int fd, asked_row const& a) {
  asked_answer const now = take_answer(fd, a);
  if (!now.is_there) return;
  if (now.is_held && begin_writing(slot_of(fd), fd, now.row)) return;
  if (!now.is_held) count(abi::gather::refused_lease, 1);
  end_unused_write_lease(now.row.lease, now.row.word);
  habit_of(fd).pause();
}

}  // namespace

void end_unused_write_lease(unsigned lease, std::uint64_t word) {
  end_row(static_cast<int>(abi::fd_of(word)), lease, word, set->rings->head.house.load());
  free_row(lease, word);
}

bool has_in_ring(slot const& s) { return core::waiting_bytes(ring_of(s.lease)) != 0; }

namespace {

/// It is served, and was waited for in vain. False: nobody serves it any more.
bool note_late(slot const& s, std::int64_t until_ns) {
  bool const is_late = now_ns() >= until_ns && is_served(s.holder);
  if (is_late) stands_at(s).store(ring_of(s.lease).begin.load() + 1);
  return is_late;
}

bool stands(slot const& s) {
  return stands_at(s).load() == ring_of(s.lease).begin.load() + 1 && is_served(s.holder);
}

}  // namespace

bool flush_until(slot& s, int fd, std::int64_t until_ns) {
  if (stands(s)) return false;
  flushed f;
  bool is_late = false;
  {
    undisturbed const quiet;
    locked const alone(s.lock, until_ns);
    bool const is_its = s.fd_after.load() == fd + 1 && s.is_for == use::strict;
    if (!alone.has_it())
      is_late = note_late(s, until_ns);
    else if (is_its)
      f = flush_ring(s, fd, amount::all, until_ns);
    is_late |= stands(s);
  }
  pay(f);
  return !is_late;
}

flushed flush_ring(slot& s, int fd, amount how, std::int64_t until_ns) {
  core::ring& r = ring_of(s.lease);
  bool is_end = lets_go(how) || core::is_shut(r);
  bool is_short = how == amount::all_and_let_go && !core::is_shut(r) && is_served(s.holder) &&
                  r.calls.load() < core::enough_reads;
  if (!is_end) {
    unsigned const calls = r.calls.load();
    r.wants_all.store(1);
    std::uint64_t const end = core::bytes_in(r);
    auto const is_written = [&] { return r.begin.load() >= end || core::is_shut(r); };
    bool const is_done = await(r, s.holder, is_written, until_ns);
    if (!is_done && note_late(s, until_ns)) return collect(s, r);
    is_end = !is_done || core::is_shut(r);
    is_short = !is_end && is_vain(s, calls - s.paused_at, core::few_strict_writes);
    is_end |= is_short;
    s.paused_at = calls;
    if (is_end) habit_of(fd).pause();
  }
  if (is_short) count(abi::gather::ended_asked, 1);
  bool is_stuck = false;
  if (is_end) {
    core::shut(r);
    is_stuck = !end_row(fd, s.lease, s.lease_word, s.holder);
  }
  // A row that is not ours any more had nothing left for us.
  bool const is_ours = !is_end || state_now(s.lease, s.lease_word) == lease_state::broken;
  flushed f = is_ours ? collect(s, r) : flushed{true, s.entry, 0, {}};
  if (!is_end) return f;
  if (is_stuck) f.out.error = EIO;
  learn(lease_kind::write, s.calls);
  release(s, fd, f.out.error);
  free_row(s.lease, s.lease_word);
  return f;
}

bool take_into_ring(slot& s, int fd, void const* from, std::size_t size) {
  // All of it first: what waits in the ring while this thread waits for a limit becomes another
  // write of the kernel, for which it would wait again.
  while (ring_of(s.lease).flushes.load(std::memory_order_relaxed) != s.paid_flushes) {
    if (!settle(s, fd, ring_of(s.lease))) {
      count(abi::gather::ended_slow, 1);
      end_for_a_while(fd);
      return false;
    }
    // Another thread may have let it go meanwhile.
    if (!is_held(fd) || s.is_for != use::strict) return false;
  }
  unsigned const lease = s.lease;
  std::uint64_t const word = row_of(lease).word.load();
  core::ring& r = ring_of(lease);
  auto const n = static_cast<std::uint32_t>(size);
  // It may have been let go meanwhile, and held anew with another ring. As long as one is taken it
  // is nobody else's.
  auto const put = [&](std::uint32_t to, std::uint32_t at, std::uint32_t bytes) {
    return s.fd_after.load(std::memory_order_relaxed) == fd + 1 && s.lease == lease &&
           copy(s, r.bytes + to, static_cast<char const*>(from) + at, bytes);
  };
  bool const is_kept = is_served(s.holder) && abi::is_kept(head(), coarse_tick());
  for (bool fits = size <= core::most_strict_piece && is_kept; fits;) {
    core::added const a = core::add(r, n, put);
    if (a == core::added::yes) {
      std::uint64_t const waiting = core::waiting_bytes(r);
      bool const is_half = waiting >= core::ring::due && waiting - n < core::ring::due;
      if (is_half || set->rings->head.is_asleep.load() != 0) ring_bell(head());
      if (!is_costly(s)) return true;
      count(abi::gather::ended_memory, 1);
      end_for_a_while(fd);
      return true;
    }
    fits = a == core::added::full && make_room(s, r, n);
  }
  flush(s, fd, amount::all_and_let_go);
  free_row(lease, word);  // whoever ended it may have found that we copied
  return false;
}

void note_strict(int fd, ssize_t n) {
  if (asked_row const a = asked_for(fd); a.is_there) return look_at_asked(fd, a);
  if (!makes_habit(fd, n, core::small_write, lease_kind::write)) return;
  if (!ask(fd)) return habit_of(fd).pause();
  await_answer(fd, look_at_asked);
}

}  // namespace sluice::gather
