// SPDX-License-Identifier: Apache-2.0
// Problem: a program that reads a few bytes at a time pays a system call for each.
// Idea: where a target says "reads", small reads that follow one another are answered from memory.
// One read brings 64 KiB there, and that is charged. Meanwhile the keeper of the job holds the
// kernel's read lease for the file (abi/read_lease.h): nobody has it open for writing, and whoever
// opens it for that waits until the keeper has said so on the board.
// What stays true: a read that is answered from memory brings what the file has at that moment. The
// kernel's position lags behind, so every other call that may see it (gather.h) moves it first.
// There is nothing to lose: who is killed takes only a position with him that nobody shares. No
// call waits for the keeper but the one that lets a file go, for a second at most: after it nobody
// meets the lease.
#include <fcntl.h>

#include "clock.h"
#include "loaded.h"
#include "meter.h"
#include "small/gather.h"
#include "small/held.h"

namespace sluice::gather {

namespace {

using abi::lease_state;

void count(abi::buffer what, std::uint64_t n) {
  if (n == 0) return;
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed); s != nullptr)
    s->buffer[static_cast<unsigned>(what)].fetch_add(n, std::memory_order_relaxed);
}

abi::read_lease& row_of(unsigned lease) { return set->board->of[lease % abi::read_leases]; }

void ring() {
  set->board->bell.fetch_add(1);
  sys::futex_wake(&set->board->bell, ~0u);
}

/// In this order: see read_lease.h.
bool is_leased(slot const& s) {
  abi::read_board const& b = *set->board;
  return b.keeper.load(std::memory_order_acquire) == s.keeper && abi::is_kept(b, coarse_tick()) &&
         row_of(s.lease).word.load(std::memory_order_acquire) == s.lease_word;
}

/// The low half of the word of a row, which the keeper changes last.
std::uint32_t* futex_of(abi::read_lease& row) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<std::uint32_t*>(&row.word);
}

/// The row is the keeper's again, or nobody's. `word`: as it was when it was asked for, or held.
void end_lease(unsigned lease, std::uint64_t word) {
  abi::read_lease& row = row_of(lease);
  std::uint64_t seen = row.word.load();
  auto const is_ours = [&] {
    return abi::with(seen, lease_state::free) == abi::with(word, lease_state::free);
  };
  while (is_ours()) {
    lease_state const now = abi::state_of(seen);
    bool const has_keeper = now == lease_state::asked || now == lease_state::held;
    if (!has_keeper && now != lease_state::broken && now != lease_state::refused) return;
    lease_state const next = has_keeper ? lease_state::ended : lease_state::free;
    if (!row.word.compare_exchange_weak(seen, abi::with(seen, next))) continue;
    if (now == lease_state::broken) count(abi::buffer::breaks, 1);
    if (!has_keeper) return;
    break;
  }
  if (!is_ours()) return;
  ring();
  std::uint64_t const ended = abi::with(word, lease_state::ended);
  constexpr std::int64_t most_ns = 1'000'000'000;
  std::int64_t const until_ns = now_ns() + most_ns;
  while (row.word.load() == ended && abi::is_kept(*set->board, coarse_tick()) &&
         now_ns() < until_ns)
    sys::futex_wait(futex_of(row), static_cast<std::uint32_t>(ended), until_ns, ~0u);
}

/// The program's memory may be written there: what is asked writes a byte that the read overwrites.
bool can_be_written(char* to) { return sys::call(SYS_rt_sigpending, sys::as_long(to), 1) == 0; }

/// Of memory that can be read: the program's constants cannot be written.
bool is_data(void const* to) {
  return region_of(to) != &known.image || reinterpret_cast<std::uintptr_t>(to) >= set->data_low;
}

bool may_be_written(slot& s, char* to, std::size_t size) {
  bool const can_read = is_safe(to, size) || becomes_safe_rarely(s, to, size);
  // Of what the kernel was asked for, only that it can be read is known.
  bool const is_asked = asked_bytes(to) >= size && known.has_constants.load();
  if (can_read && !is_asked && is_data(to)) return true;
  if (!set->copies_by_kernel || size > page_size) return false;
  return can_be_written(to) && can_be_written(to + size - 1);
}

bool copy_out(slot& s, void* to, char const* from, std::size_t size) {
  if (size == 0) return true;
  if (!may_be_written(s, static_cast<char*>(to), size)) return false;
  __builtin_memcpy(to, from, size);
  return true;
}

unsigned patience() {
  return std::max(mine->patience.load(std::memory_order_relaxed), core::gather_begin);
}

/// So many reads came of a lease.
void learn(unsigned answered) { mine->patience.store(core::patience_after(patience(), answered)); }

void note_answered(slot& s, core::gathered::contents const& was) {
  count(abi::buffer::reads, was.calls);
  s.reads += was.calls;
  s.at += was.bytes;
}

struct filled {
  bool is_done = false;
  fd_entry entry = entry_unknown;
  std::uint64_t bytes = 0;
};

/// Reads on where the last byte was taken, if the lease was held before and after it.
filled fill_locked(slot& s, int fd, std::uint32_t size) {
  if (s.fd_after.load() != fd + 1) return {};
  note_answered(s, s.bytes.shut());
  std::uint32_t const window = core::most_read_ahead(static_cast<std::uint64_t>(s.at), size);
  long n = -1;
  if (is_leased(s) && !s.bytes.is_taken() && is_still(s, fd))
    n = sys::act(SYS_pread64, fd, sys::as_long(s.room), window, static_cast<long>(s.at));
  if (n < 0 || !is_leased(s)) {
    end_reading(s, fd, {});
    return {};
  }
  // Less may also come before a part that cannot be read; the next read is told why.
  bool const are_last =
      n < static_cast<long>(window) && static_cast<std::uint64_t>(s.at + n) >= sys::size_of(fd);
  s.bytes.open(0, static_cast<std::uint32_t>(n), are_last);
  return {true, s.entry, static_cast<std::uint64_t>(n)};
}

void pay(filled const& f) {
  count(abi::buffer::fills, 1);
  count(abi::buffer::bytes, f.bytes);
  visit v{call::read, core::op::read, when::before, false, 0, f.bytes, 0};
  v.began_ns = visit::untimed;
  if (may_ask() && enter_entry(v, f.entry, -1, true)) leave(v, false, f.bytes);
}

bool fill(slot& s, int fd, std::uint32_t size) {
  filled f;
  {
    undisturbed const quiet;
    locked const alone(s.lock);
    f = fill_locked(s, fd, size);
  }
  if (f.is_done) pay(f);
  return f.is_done;
}

/// Why no lease is asked for; buffer::count: one may be. `n`: bytes of a read.
abi::buffer look(int fd, std::uint64_t n, bool& is_long) {
  constexpr long unfit = O_DIRECT | O_PATH | O_ASYNC;
  if (!is_own(fd)) return abi::buffer::refused_shared;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  bool const is_fit =
      !sys::failed(flags) && (flags & unfit) == 0 && (flags & O_ACCMODE) == O_RDONLY;
  file const f = file_of(fd);
  if (!is_fit || !f.is_regular || has_rings()) return abi::buffer::refused_kind;
  if (is_held_elsewhere(nullptr, fd, f)) return abi::buffer::refused_shared;
  long const at = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  std::uint64_t const size = sys::size_of(fd, sys::at_do_not_sync);
  is_long = at >= 0 && size > static_cast<std::uint64_t>(at) &&
            (size - static_cast<std::uint64_t>(at)) / n >= core::reads_to_come;
  return abi::buffer::count;
}

/// A row that was free; 0: none is, or nobody keeps them. Else its number plus one, and its word.
unsigned claim_row(int fd, std::uint64_t& word) {
  std::uint32_t const pid = stage.fork_page->pid;
  if (pid == 0 || !abi::is_kept(*set->board, coarse_tick())) return 0;
  for (unsigned i = 0; i < abi::read_leases; ++i) {
    unsigned const lease = (pid + static_cast<unsigned>(fd) + i) % abi::read_leases;
    std::uint64_t seen = row_of(lease).word.load();
    if (abi::state_of(seen) != lease_state::free) continue;
    word = abi::lease_word(pid, static_cast<unsigned>(fd), abi::count_of(seen) + 1,
                           lease_state::asked);
    if (row_of(lease).word.compare_exchange_strong(seen, word)) return lease + 1;
  }
  return 0;
}

/// Asks the keeper, and goes on. False: there is none, or it does not pay.
bool ask(int fd, std::uint64_t n) {
  bool is_long = false;
  if (abi::buffer const no = look(fd, n, is_long); no != abi::buffer::count) {
    count(no, 1);
    return false;
  }
  asked_lease& asked = mine->asked[place_of(fd)];
  unsigned none = 0;
  if (!is_long || !asked.row.compare_exchange_strong(none, asked_lease::reserved)) return false;
  std::uint64_t word = 0;
  unsigned const row = claim_row(fd, word);
  if (row != 0) mine->leases_asked.fetch_add(1);
  asked.word.store(word);
  asked.row.store(row);
  count(row == 0 ? abi::buffer::refused_lease : abi::buffer::leases, 1);
  if (row != 0) ring();
  return row != 0;
}

struct asked_row {
  unsigned row = 0;  // plus one; 0: there is none
  std::uint64_t word = 0;
};

asked_row asked_for(int fd) {
  asked_lease const& asked = mine->asked[place_of(fd)];
  asked_row const a = {asked.row.load(), asked.word.load()};
  bool const is_its =
      a.row != asked_lease::reserved && abi::fd_of(a.word) == static_cast<unsigned>(fd);
  return is_its ? a : asked_row{};
}

/// Whoever gets it ends it.
asked_row take_asked(int fd) {
  asked_row a = asked_for(fd);
  if (a.row == 0 || !mine->asked[place_of(fd)].row.compare_exchange_strong(a.row, 0)) return {};
  mine->leases_asked.fetch_sub(1);
  return a;
}

bool begin_reading(slot& s, int fd, unsigned lease, std::uint64_t word) {
  auto const entry = static_cast<fd_entry>(entry_of_fd(fd));
  file const f = file_of(fd);
  undisturbed const quiet;
  locked const alone(s.lock);
  std::uint32_t const keeper = set->board->keeper.load(std::memory_order_acquire);
  abi::read_lease const& row = row_of(lease);
  bool const is_its = row.device.load() == f.device && row.inode.load() == f.inode;
  long const at = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (!is_its || at < 0 || !begin_to_hold(s, fd, f, entry, true)) return false;
  s.at = at, s.reads = 0;
  s.lease = lease, s.keeper = keeper;
  s.lease_word = abi::with(word, lease_state::held);
  s.bytes.open(0, 0);
  return true;
}

/// The keeper has answered, or has not yet.
void look_at_asked(int fd, asked_row const& a) {
  std::uint64_t const now = row_of(a.row - 1).word.load(std::memory_order_acquire);
  if (now == a.word && abi::is_kept(*set->board, coarse_tick())) return;
  asked_row const taken = take_asked(fd);
  if (taken.row == 0) return;
  bool const is_held = now == abi::with(taken.word, lease_state::held);
  if (is_held && begin_reading(slot_of(fd), fd, taken.row - 1, taken.word)) return;
  if (!is_held) count(abi::buffer::refused_lease, 1);
  end_lease(taken.row - 1, taken.word);
  habit_of(fd).pause();
}

}  // namespace

void forget_lease(int fd) {
  asked_row const taken = take_asked(fd);
  if (taken.row == 0) return;
  learn(0);
  end_lease(taken.row - 1, taken.word);
}

void forget_leases() {
  if (mine->leases_asked.load(std::memory_order_relaxed) == 0) return;
  for (asked_lease const& asked : mine->asked)
    if (asked.row.load() != 0) forget_lease(static_cast<int>(abi::fd_of(asked.word.load())));
}

void end_reading(slot& s, int fd, core::gathered::contents const& was) {
  note_answered(s, was);
  if (is_still(s, fd)) sys::call(SYS_lseek, fd, static_cast<long>(s.at), SEEK_SET);
  learn(s.reads);
  release(s, fd, 0);
  end_lease(s.lease, s.lease_word);
}

void before_own_lease(int fd) {
  if (may_look() && has_place(fd)) forget_lease(fd);
}

bool may_be_leased() {
  if (!may_look() || set->read_targets == 0) return false;
  for (abi::read_lease const& row : set->board->of) {
    lease_state const s = abi::state_of(row.word.load(std::memory_order_relaxed));
    if (s == lease_state::held || s == lease_state::broken || s == lease_state::ended) return true;
  }
  return false;
}

answer take_read(int fd, void* to, std::size_t size, std::size_t& n) {
  if (!has_any() || !is_held(fd) || !slot_of(fd).is_read) return answer::not_held;
  loaded::end_if_cancelled();
  slot& s = slot_of(fd);
  auto const wanted = static_cast<std::uint32_t>(size);
  auto const draw = [&] {
    std::uint32_t const got = s.bytes.draw(wanted, [&](std::uint32_t at, std::uint32_t most) {
      return s.fd_after.load(std::memory_order_relaxed) == fd + 1 && is_leased(s) &&
             copy_out(s, to, s.room + at, most);
    });
    n = got;
    return got != core::gathered::none;
  };
  bool const fits = size <= core::most_piece;
  if (fits && (draw() || (fill(s, fd, wanted) && draw()))) return answer::gathered;
  let_go(fd);
  return answer::begin_anew;
}

void note_read(int fd, ssize_t n) {
  if (n <= 0 || !may_look() || set->read_targets == 0 || !has_place(fd)) return;
  if (!is_of(set->read_targets, peek_fd(fd)) || is_apart() || must_not_hold()) return;
  if (asked_row const a = asked_for(fd); a.row != 0) return look_at_asked(fd, a);
  core::habit& h = habit_of(fd);
  bool const is_small = n <= core::small_read;
  auto const bytes = is_small ? static_cast<std::uint64_t>(n) : core::most_piece + 1;
  if (h.wrote(fd, bytes, patience()) && !ask(fd, static_cast<std::uint64_t>(n))) h.pause();
}

}  // namespace sluice::gather
