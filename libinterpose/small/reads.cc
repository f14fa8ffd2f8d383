// SPDX-License-Identifier: Apache-2.0
// Problem: a program that reads a few bytes at a time pays a system call for each.
// Idea: where a target says "reads", small reads that follow one another are answered from memory.
// One read brings 64 KiB there, and that is charged. Meanwhile the keeper of the job holds the
// kernel's read lease for the file (abi/lease_board.h): nobody has it open for writing, and whoever
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
#include "small/leases.h"

namespace sluice::gather {

namespace {

void count(abi::buffer what, std::uint64_t n) {
  if (n == 0) return;
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed); s != nullptr)
    s->buffer[static_cast<unsigned>(what)].fetch_add(n, std::memory_order_relaxed);
}

/// In this order: see lease_board.h.
bool is_leased(slot const& s) {
  abi::lease_head const& h = set->reads->head;
  return h.keeper.load(std::memory_order_acquire) == s.holder && abi::is_kept(h, coarse_tick()) &&
         row_of(s.lease).word.load(std::memory_order_acquire) == s.lease_word;
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

void note_answered(slot& s, core::gathered::contents const& was) {
  count(abi::buffer::reads, was.calls);
  s.calls += was.calls;
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
    end_reading(s, fd, {}, false);
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
  if (!is_fit || !f.is_regular || has_other_ways()) return abi::buffer::refused_kind;
  if (is_held_elsewhere(nullptr, fd, f)) return abi::buffer::refused_shared;
  long const at = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  std::uint64_t const size = sys::size_of(fd, sys::at_do_not_sync);
  is_long = at >= 0 && size > static_cast<std::uint64_t>(at) &&
            (size - static_cast<std::uint64_t>(at)) / n >= core::reads_to_come;
  return abi::buffer::count;
}

bool ask(int fd, std::uint64_t n) {
  bool is_long = false;
  if (abi::buffer const no = look(fd, n, is_long); no != abi::buffer::count) {
    count(no, 1);
    return false;
  }
  if (!is_long) return false;
  bool const is_asked = ask_for_lease(fd, lease_kind::read);
  count(is_asked ? abi::buffer::leases : abi::buffer::refused_lease, 1);
  return is_asked;
}

bool begin_reading(slot& s, int fd, unsigned lease, std::uint64_t word) {
  auto const entry = static_cast<fd_entry>(entry_of_fd(fd));
  file const f = file_of(fd);
  undisturbed const quiet;
  locked const alone(s.lock);
  std::uint32_t const keeper = set->reads->head.keeper.load(std::memory_order_acquire);
  abi::lease_row const& row = row_of(lease);
  bool const is_its = row.device.load() == f.device && row.inode.load() == f.inode;
  long const at = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (!is_its || at < 0 || !begin_to_hold(s, fd, f, entry, use::read)) return false;
  s.at = at, s.calls = 0;
  s.lease = lease, s.holder = keeper;
  s.lease_word = abi::with(word, abi::lease_state::held);
  s.bytes.open(0, 0);
  return true;
}

/// The keeper has answered, or has not yet.
void look_at_asked(int fd, asked_row const& a) {
  asked_answer const now = take_answer(fd, a);
  if (!now.is_there) return;
  if (now.is_held && begin_reading(slot_of(fd), fd, now.row.lease, now.row.word)) return;
  if (!now.is_held) count(abi::buffer::refused_lease, 1);
  end_read_lease(now.row.lease, now.row.word);
  habit_of(fd).pause();
}

}  // namespace

void end_reading(slot& s, int fd, core::gathered::contents const& was, bool is_asked) {
  note_answered(s, was);
  if (is_asked && is_leased(s) && s.calls < core::enough_reads) count(abi::buffer::ended_asked, 1);
  if (is_still(s, fd)) sys::call(SYS_lseek, fd, static_cast<long>(s.at), SEEK_SET);
  learn(lease_kind::read, s.calls);
  release(s, fd, 0);
  end_read_lease(s.lease, s.lease_word);
}

answer take_read(int fd, void* to, std::size_t size, std::size_t& n) {
  if (!has_any() || !is_held(fd) || slot_of(fd).is_for != use::read) return answer::not_held;
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
  if (fits && (draw() || (fill(s, fd, wanted) && draw()))) {
    if (is_costly(s)) {
      count(abi::buffer::ended_memory, 1);
      end_for_a_while(fd);
    }
    return answer::gathered;
  }
  let_go(fd);
  return answer::begin_anew;
}

void note_read(int fd, ssize_t n) {
  if (n <= 0 || !may_look() || set->read_targets == 0 || !has_place(fd)) return;
  if (!is_of(set->read_targets, peek_fd(fd)) || is_apart() || must_not_hold()) return;
  if (asked_row const a = asked_for(fd); a.is_there) return look_at_asked(fd, a);
  if (!makes_habit(fd, n, core::small_read, lease_kind::read)) return;
  if (!ask(fd, static_cast<std::uint64_t>(n))) return habit_of(fd).pause();
  await_answer(fd, look_at_asked);
}

}  // namespace sluice::gather
