// SPDX-License-Identifier: Apache-2.0
// See gather.h: what is held, and how it is written out.
#include "small/gather.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "area.h"
#include "clock.h"
#include "extras.h"
#include "loaded.h"
#include "meter.h"
#include "small/held.h"
#include "small/leases.h"
#include "small/strict.h"
#include "stream.h"

namespace sluice::gather {

static_assert(sizeof(state) <= gather_pages * extra_page);
constinit state* mine = nullptr;
constinit settings* set = nullptr;

namespace {

constinit std::atomic<bool> is_for_good{false};  // end_for_good() was called, or a parent did

/// libc itself writes messages there (perror, getopt …), and nobody sees it.
bool is_for_messages(int fd) { return fd == 2 || (fd == 0 && set->written_targets != 0); }

/// As a descriptor that nobody meters: its small writes are not charged.
constexpr fd_entry as_outside(fd_entry entry) {
  return static_cast<fd_entry>((entry & ~entry_kind_mask) | entry_outside);
}

bool swap_entry(int fd, fd_entry from, fd_entry to) {
  return stage.mine->entry_of(static_cast<unsigned>(fd)).compare_exchange_strong(from, to);
}

}  // namespace

void count(abi::gather what, std::uint64_t n) {
  if (n == 0) return;
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed); s != nullptr)
    s->gather[static_cast<unsigned>(what)].fetch_add(n, std::memory_order_relaxed);
}

// Some file systems take nothing of a write for which there is no room. Of the small ones that the
// program made all would be there that have room, so it is tried with less, down to a page.
sent send(int fd, char const* from, std::uint64_t bytes) {
  sent s;
  std::uint64_t most = bytes;
  while (s.bytes < bytes && s.error == 0) {
    std::uint64_t const size = std::min(most, bytes - s.bytes);
    long const n = sys::act(SYS_write, fd, sys::as_long(from + s.bytes), static_cast<long>(size));
    bool const is_full = n == -ENOSPC || n == -EDQUOT;
    if (is_full && size > page_size)
      most = size / 2;
    else if (sys::failed(n))
      s.error = static_cast<int>(-n);
    if (n == 0) s.error = EIO;
    if (n > 0) s.bytes += static_cast<std::uint64_t>(n);
  }
  return s;
}

void release(slot& s, int fd, int error) {
  if (s.is_for != use::read) count(abi::gather::let_go, 1);
  swap_entry(fd, as_outside(s.entry), s.entry);
  s.fd_after.store(0, std::memory_order_release);
  mine->held.fetch_sub(1);
  if (error != 0) mine->error[fd].store(static_cast<std::uint8_t>(error));
}

namespace {

bool is_its(slot const& s, file const& f) {
  return s.inode.load() == f.inode && s.device.load() == f.device;
}

}  // namespace

bool is_still(slot const& s, int fd) {
  file const now = file_of(fd);
  if (now.inode != 0) return is_its(s, now);
  return !sys::failed(sys::call(SYS_fcntl, fd, F_GETFD));
}

bool must_not_hold() { return mine->standing_back.load() != 0 || is_for_good.load(); }

bool identify_cached(place const& where, file& f) {
  constexpr long openat2 = 437;
  struct {
    std::uint64_t flags = O_PATH | O_CLOEXEC, mode = 0, resolve = 0x20;  // RESOLVE_CACHED
  } how;
  if (is_in_sandbox() || !set->copies_by_kernel) return false;
  undisturbed const quiet;  // who jumps out of a handler would leave it open
  long const fd =
      sys::call(openat2, where.fd, sys::as_long(where.path), sys::as_long(&how), sizeof how);
  if (sys::failed(fd)) return false;
  f = file_of(static_cast<int>(fd));
  sys::call(SYS_close, fd);
  return f.inode != 0;
}

namespace {

/// Those that hold this file. One that cannot be looked at any more may be any.
template <class Do>
void each_of(file const& f, Do&& act) {
  for (slot& s : mine->of) {
    int const fd = s.fd_after.load(std::memory_order_acquire) - 1;
    if (fd >= 0 && (f.inode == 0 || is_its(s, f))) act(s, fd);
  }
}

/// The numbers mean one open file. What is read ahead for one that is another file's is nothing to
/// it.
bool are_copies(int fd, int other) {
  return has_place(fd) && mine->opening[fd].load(std::memory_order_relaxed) ==
                              mine->opening[other].load(std::memory_order_relaxed);
}

/// No child has it: it knows nothing of what its parent held.
bool map_room(slot& s, std::uint32_t bytes) {
  if (s.room_bytes >= bytes) return true;
  if (s.room != nullptr) sys::call(SYS_munmap, sys::as_long(s.room), s.room_bytes);
  long const at = sys::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  bool const is_there = !sys::failed(at);
  s.room = is_there ? reinterpret_cast<char*>(at) : nullptr;
  s.room_bytes = is_there ? bytes : 0;
  if (is_there) sys::call(SYS_madvise, at, bytes, MADV_DONTFORK);
  return is_there;
}

}  // namespace

bool is_held_elsewhere(slot const* own, int fd, file const& f) {
  bool is_any = false;
  each_of(f, [&](slot& s, int other) {
    is_any |= &s != own && (s.is_for != use::read || are_copies(fd, other));
  });
  return is_any;
}

bool has_copies(int fd) {
  if ((mine->opening[fd].load() & is_copied) == 0) return false;
  for (int other = 0; has_place(other); ++other)
    if (other != fd && are_copies(fd, other)) return true;
  return false;
}

bool has_other_ways() {
#define NAMED(symbol) \
  { #symbol, loaded::hash_of(#symbol), nullptr }
  constexpr loaded::symbol rings[] = {NAMED(io_uring_queue_init), NAMED(io_submit)};
  constexpr loaded::symbol wrapped[] = {NAMED(write), NAMED(read), NAMED(pread), NAMED(pread64)};
#undef NAMED
  return std::any_of(std::begin(rings), std::end(rings), loaded::find_next) ||
         !std::all_of(std::begin(wrapped), std::end(wrapped), loaded::is_libcs);
}

bool begin_to_hold(slot& s, int fd, file const& f, fd_entry entry, use is_for) {
  constexpr std::uint32_t rooms[] = {core::gather_room, core::read_room, 0};  // by use
  std::uint32_t const room_bytes = rooms[static_cast<unsigned>(is_for)];
  if (s.fd_after.load() != 0 || s.bytes.is_taken() || !map_room(s, room_bytes)) return false;
  s.device = f.device, s.inode = f.inode, s.entry = entry, s.is_for = is_for, s.vain = 0;
  s.until_asks = 0, s.doubts = 0;
  if (!swap_entry(fd, entry, as_outside(entry))) return false;
  mine->held.fetch_add(1);
  s.fd_after.store(fd + 1);
  mine->holds.fetch_add(1);
  if (is_for != use::read) count(abi::gather::held, 1);
  // Whoever shares descriptors, stands back or holds the same file from now on sees that it is
  // held.
  bool const is_there = is_its(s, file_of(fd));  // for sure
  if (is_there && is_own(fd) && !must_not_hold() && !is_held_elsewhere(&s, fd, f)) return true;
  release(s, fd, 0);
  return false;
}

namespace {

std::uint32_t kept_of(slot const& s, std::uint32_t bytes, amount how) {
  bool const may_keep = how == amount::whole_windows && s.at >= 0 && !s.bytes.is_taken();
  return may_keep ? core::kept_bytes(static_cast<std::uint64_t>(s.at), bytes) : 0;
}

/// What was gathered for it has no place to go.
flushed give_up(slot& s, int fd, unsigned calls) {
  swap_entry(fd, as_outside(s.entry), entry_unknown);
  release(s, fd, 0);
  return {true, s.entry, calls, {0, EBADF}};
}

/// Whatever came of the last flush alone.
bool did_not_pay(slot const& s) {
  return s.vain >= core::most_vain_flushes || s.calls < core::few_writes;
}

void count_vain(amount how) {
  if (how == amount::all_and_pause) return;
  count(how == amount::all_of_late ? abi::gather::ended_slow : abi::gather::ended_asked, 1);
}

}  // namespace

flushed flush_locked(slot& s, int fd, amount how) {
  if (s.fd_after.load() != fd + 1) return {};
  if (s.is_for == use::strict) return flush_ring(s, fd, how);
  core::gathered::contents const was = s.bytes.shut();
  if (s.is_for == use::read) {
    end_reading(s, fd, was, how == amount::all_and_let_go);
    return {true, s.entry, 0, {}};
  }
  if (was.bytes != 0 && !is_still(s, fd)) return give_up(s, fd, was.calls);
  std::uint32_t const kept = kept_of(s, was.bytes, how);
  flushed f = {true, s.entry, was.calls, send(fd, s.room, was.bytes - kept)};
  f.writes = f.out.error == 0 && f.out.bytes != 0 ? 1 : 0;
  s.calls += was.calls;
  s.vain = was.calls < core::few_writes ? s.vain + 1 : 0;
  bool const is_end = lets_go(how);
  bool const is_vain = s.vain >= (is_end ? 1 : core::most_vain_flushes);
  bool const goes_on = !is_end && !is_vain;
  if (is_vain) habit_of(fd).pause();
  if (is_vain && did_not_pay(s)) count_vain(how);
  // Who keeps some has a full buffer, and nobody was copying: it goes on. Where the bytes could not
  // be written out, those after them are lost with them.
  if (f.out.error != 0 || (kept == 0 && (!goes_on || s.bytes.is_taken()))) {
    release(s, fd, f.out.error);
    return f;
  }
  if (s.at >= 0) s.at += static_cast<std::int64_t>(f.out.bytes);
  __builtin_memmove(s.room, s.room + f.out.bytes, kept);
  s.paused_at = coarse_tick();
  s.bytes.open(kept, core::most_gathered(s.at));
  return f;
}

void pay(flushed const& f) {
  count(abi::gather::writes, f.calls);
  unsigned const failed = f.out.error != 0 ? 1 : 0;
  count(abi::gather::failures, failed);
  count(abi::gather::flushes, f.writes);
  count(abi::gather::bytes, f.out.bytes);
  for (unsigned n = 0; n < f.writes + failed; ++n) {
    std::uint64_t const bytes = n == 0 ? f.out.bytes : 0;
    visit v{call::write, core::op::write, when::before, false, 0, bytes, 0};
    v.began_ns = visit::untimed;
    if (may_ask() && enter_entry(v, f.entry, -1, true)) leave(v, n >= f.writes, bytes);
  }
}

bool flush(slot& s, int fd, amount how) {
  flushed f;
  {
    undisturbed const quiet;
    locked const alone(s.lock);
    f = flush_locked(s, fd, how);
  }
  pay(f);
  return f.was_held;
}

namespace {

/// Each of the known places is without a gap.
bool is_known_whole(void const* from, std::size_t size) {
  auto const* const last = static_cast<char const*>(from) + size - 1;
  return size != 0 && is_known(from) && is_known(last) && region_of(from) == region_of(last);
}

}  // namespace

bool is_safe(void const* from, std::size_t size) {
  return are_known(from, size) || is_known_whole(from, size) || asked_bytes(from) >= size;
}

namespace {

bool becomes_safe(void const* from, std::size_t size) {
  return ask_for_bytes(from, size) && is_safe(from, size);
}

}  // namespace

bool becomes_safe_rarely(slot& s, void const* from, std::size_t size) {
  if (s.until_asks-- != 0) return false;
  s.until_asks = core::asks_rarely;
  bool const is_known_now = becomes_safe(from, size);
  unsigned const doubts = is_known_now ? 0 : s.doubts.load(std::memory_order_relaxed) + 1u;
  s.doubts.store(static_cast<std::uint8_t>(std::min(doubts, core::most_doubts)),
                 std::memory_order_relaxed);
  return is_known_now;
}

namespace {

/// Of memory that may be gone, or is a mapping that somebody cuts short. False: nothing is to be
/// relied on at `to`.
bool copy_by_kernel(char* to, void const* from, std::size_t size) {
  iovec const here = {to, size}, there = {const_cast<void*>(from), size};
  long const own = stage.fork_page->pid;
  return set->copies_by_kernel && own != 0 &&
         sys::call(SYS_process_vm_readv, own, sys::as_long(&here), 1, sys::as_long(&there), 1, 0) ==
             static_cast<long>(size);
}

}  // namespace

bool copy(slot& s, char* to, void const* from, std::size_t size) {
  if (!is_safe(from, size) && !becomes_safe_rarely(s, from, size))
    return copy_by_kernel(to, from, size);
  __builtin_memcpy(to, from, size);
  return true;
}

namespace {

/// Of programs and libraries: the loader maps them (dlopen), and nobody sees it.
bool begins_program(void const* from, ssize_t n) {
  constexpr char elf[] = {0x7f, 'E', 'L', 'F'};
  char begin[sizeof elf];
  std::size_t const size = n < ssize_t{sizeof elf} ? static_cast<std::size_t>(n) : sizeof elf;
  if (is_safe(from, size) || (!set->copies_by_kernel && becomes_safe(from, size)))
    __builtin_memcpy(begin, from, size);
  else if (!set->copies_by_kernel)
    return true;  // for all we know
  else if (!copy_by_kernel(begin, from, size))
    return false;
  return __builtin_memcmp(begin, elf, size) == 0;
}

/// A file that grows past the limit of the process is told so at the very write.
bool has_limit() {
  rlimit limit = {};
  constexpr long self_process = 0;
  long const r = sys::call(SYS_prlimit64, self_process, RLIMIT_FSIZE, 0, sys::as_long(&limit));
  return sys::failed(r) || limit.rlim_cur != RLIM_INFINITY;
}

/// What is there libc writes out itself, as error(3) does, and nobody sees it; nor what
/// putchar_unlocked() puts there. Before it gets its buffer we see the call.
bool may_have_text(int fd) {
  FILE* const out = set->text_out;
  return out != nullptr && fd_of(out) == fd && out->_IO_buf_base != nullptr;
}

}  // namespace

abi::gather why_not_held(int fd, file& f, std::int64_t& at) {
  constexpr long unfit = O_DIRECT | O_SYNC | O_DSYNC | O_PATH | O_ASYNC;
  if (!is_own(fd)) return abi::gather::refused_shared;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  f = file_of(fd);
  bool const is_fit = !sys::failed(flags) && (flags & unfit) == 0 && !f.has_privilege;
  if (!is_fit || !f.is_regular || has_limit() || has_other_ways()) return abi::gather::refused_kind;
  if (is_held_elsewhere(nullptr, fd, f) || may_have_text(fd)) return abi::gather::refused_shared;
  at = (flags & O_APPEND) != 0 ? -1 : sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  return abi::gather::count;
}

namespace {

bool hold(int fd) {
  file f;
  std::int64_t at = 0;
  auto const entry = static_cast<fd_entry>(entry_of_fd(fd));
  if (!is_of(set->written_targets, entry)) return false;
  if (abi::gather const no = why_not_held(fd, f, at); no != abi::gather::count) {
    count(no, 1);
    return false;
  }
  slot& s = slot_of(fd);
  undisturbed const quiet;
  locked const alone(s.lock);
  if (!begin_to_hold(s, fd, f, entry, use::gather)) return false;
  s.at = at, s.calls = 0;
  s.paused_at = coarse_tick();
  s.bytes.open(0, core::most_gathered(at));
  return true;
}

/// Or another thread is writing it out, and is to be waited for.
bool has_any_left(slot const& s) {
  bool const is_any = s.is_for == use::strict ? has_in_ring(s) : s.bytes.is_any();
  return is_any || s.lock.load() != 0;
}

/// What another descriptor of this process has gathered for the same file.
void mind_same_file(int fd) {
  unsigned const entry = peek_fd(fd);
  if ((entry & entry_kind_mask) == entry_outside) return;
  std::uint32_t const now = mine->holds.load() + 1;
  if (has_place(fd) && mine->known_at[fd].load(std::memory_order_relaxed) == now) return;
  bool is_any = false;
  each_of(file_of(fd), [&](slot& s, int other) {
    if (s.is_for == use::read && !are_copies(fd, other)) return;
    is_any = true;
    if (has_any_left(s)) flush(s, other, amount::all);
  });
  if (!is_any && has_place(fd)) mine->known_at[fd].store(now, std::memory_order_relaxed);
}

void forget(int fd) {
  if (is_held(fd)) flush(slot_of(fd), fd, amount::all_and_let_go);
  forget_lease(fd);
  mine->opening[fd].store(0);
  mine->known_at[fd].store(0);
  mine->error[fd].store(0);
}

}  // namespace

/// Of vfork.S: around a child that shares this memory sluice_before_vfork() and
/// sluice_after_vfork() are called.
extern "C" {
__attribute__((visibility("hidden"))) extern std::uint8_t sluice_gathers;
constinit std::uint8_t sluice_gathers = 0;
}

namespace {

void* map_zeros(std::size_t bytes) {
  long const at = sys::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return sys::failed(at) ? nullptr : reinterpret_cast<void*>(at);
}

/// The program's own image, without what the loader has sealed.
std::uintptr_t find_data() {
  auto const* part = reinterpret_cast<ElfW(Phdr) const*>(getauxval(AT_PHDR));
  if (part == nullptr || part->p_type != PT_PHDR) return ~std::uintptr_t{0};
  std::uintptr_t const base = reinterpret_cast<std::uintptr_t>(part) - part->p_vaddr;
  std::uintptr_t low = ~std::uintptr_t{0}, sealed = 0;
  for (auto left = getauxval(AT_PHNUM); left != 0; --left, ++part) {
    if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0) low = base + part->p_vaddr;
    if (part->p_type == PT_GNU_RELRO) sealed = base + part->p_vaddr + part->p_memsz;
  }
  return std::max(low, (sealed + page_size - 1) & -page_size);
}

/// Null where there are none: then no target is strict.
abi::ring_area* map_rings(char* segment_path) {
  abi::segment const* const s = stage.active.load(std::memory_order_relaxed);
  if ((s->head.areas.load(std::memory_order_relaxed) & abi::rings_beside) == 0) return nullptr;
  return map_area<abi::ring_area>(segment_path, "rings", [](auto const& a, std::uint64_t bytes) {
    return abi::refuse_reason(a, bytes);
  });
}

}  // namespace

bool begin(char* segment_path) {
  constexpr int wipe_on_fork = 18;
  void* const words = map_zeros(sizeof(settings));
  void* const at = map_zeros(sizeof(state));
  if (words == nullptr || at == nullptr) return false;
  if (sys::failed(sys::call(SYS_madvise, sys::as_long(at), sizeof(state), wipe_on_fork)))
    return false;
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  abi::ring_area* const rings = map_rings(segment_path);
  std::uint32_t const strict = rings != nullptr ? rings->board.head.targets : 0;
  auto* const out = static_cast<FILE*>(
      loaded::find({"_IO_2_1_stdout_", loaded::hash_of("_IO_2_1_stdout_"), nullptr}));
  set = static_cast<settings*>(words);
  *set = {s->head.gathered_targets | strict,
          s->reads.head.targets,
          strict,
          &s->reads,
          rings,
          find_data(),
          out,
          !is_below_filter()};
  mine = static_cast<state*>(at);
  sluice_gathers = 1;
  return true;
}

answer take(int fd, void const* from, std::size_t size) {
  if (!has_any() || !is_held(fd)) return answer::not_held;
  loaded::end_if_cancelled();
  slot& s = slot_of(fd);
  if (s.is_for == use::strict)
    return take_into_ring(s, fd, from, size) ? answer::gathered : answer::begin_anew;
  auto const add = [&] {
    return s.bytes.add(static_cast<std::uint32_t>(size), [&](std::uint32_t at) {
      return s.fd_after.load(std::memory_order_relaxed) == fd + 1 &&
             copy(s, s.room + at, from, size);
    });
  };
  bool const fits = size <= core::most_piece && s.is_for == use::gather;
  if (fits && (add() || (flush(s, fd, amount::whole_windows) && add()))) {
    bool const is_late = coarse_tick() - s.paused_at > core::most_wait_ticks;
    if (is_costly(s) && sys::is_on_device(s.device.load(std::memory_order_relaxed))) {
      count(abi::gather::ended_memory, 1);
      end_for_a_while(fd);
    } else if (is_late) {
      flush(s, fd, amount::all_of_late);
    }
    return answer::gathered;
  }
  flush(s, fd, amount::all_and_let_go);
  return answer::begin_anew;
}

void note_written(int fd, void const* from, ssize_t n) {
  if (n <= 0 || !may_look() || !has_place(fd)) return;
  if (!is_of(set->written_targets, peek_fd(fd)) || is_apart() || must_not_hold()) return;
  if (is_of(set->strict_targets, peek_fd(fd))) return note_strict(fd, n);
  core::habit& h = habit_of(fd);
  if (h.is_at_begin(fd) && begins_program(from, n)) note_shared(fd);
  if (h.wrote(fd, static_cast<std::uint64_t>(n)) && !hold(fd)) h.pause();
}

std::uint64_t before_open() { return may_look() ? 2 * (mine->opens.fetch_add(1) + 1) : 0; }

void note_opened(int fd, std::uint64_t opening) {
  if (!may_look() || !has_place(fd)) return;
  forget(fd);
  if (!is_for_messages(fd)) mine->opening[fd].store(opening);
  habit_of(fd).begin(fd);
}

void note_shared(int fd) {
  if (!may_look() || !has_place(fd)) return;
  std::uint64_t const opening = mine->opening[fd].load();
  forget(fd);
  for (int other = 0; (opening & is_copied) != 0 && has_place(other); ++other) {
    if (mine->opening[other].load(std::memory_order_relaxed) != opening) continue;
    mine->opening[other].store(0);
    if (is_held(other)) flush(slot_of(other), other, amount::all_and_let_go);
  }
}

void note_mapped(int fd) {
  if (may_look() && is_of(set->strict_targets, entry_of_fd(fd))) note_shared(fd);
}

void note_closed(unsigned first, unsigned last) {
  if (!may_look()) return;
  for (unsigned fd = first; fd < most_fds && fd <= last; ++fd) forget(static_cast<int>(fd));
}

void note_copied(int fd, int to) {
  if (!may_look()) return;
  if (has_place(to)) forget(to);
  if (is_for_messages(to) || !has_place(to)) return note_shared(fd);
  std::uint64_t opening = has_place(fd) ? mine->opening[fd].load() : 0;
  if (opening != 0 && mine->opening[fd].compare_exchange_strong(opening, opening | is_copied))
    mine->opening[to].store(opening | is_copied);
  if (!has_place(fd)) return;
  forget_lease(fd);
  if (is_held(fd) && slot_of(fd).is_for == use::strict) let_go(fd);
}

void end_for_good() {
  if (self.is_vfork_child) return;  // it has other rights and watches, and its parent's memory
  is_for_good.store(true);
  let_all_go();
}

bool let_go(int fd) { return flush(slot_of(fd), fd, amount::all_and_let_go); }

void end_for_a_while(int fd) {
  habit_of(fd).pause();
  flush(slot_of(fd), fd, amount::all_and_pause);
}

bool has_write_lease(int fd) {
  if (!may_look() || set->strict_targets == 0 || !has_place(fd)) return false;
  for (unsigned i = 0; i < slots; ++i) {
    int const held = mine->of[i].fd_after.load() - 1;
    if (held >= 0 && mine->of[i].is_for == use::strict && are_copies(fd, held)) return true;
    unsigned const asked = mine->asked[i].row.load();
    if (asked > abi::read_leases &&
        are_copies(fd, static_cast<int>(abi::fd_of(mine->asked[i].word.load()))))
      return true;
  }
  return false;
}

bool mind(place const& where, bool only_asks) {
  if (!has_any() || where.kind == place_kind::nothing) return false;
  if (where.kind != place_kind::fd && where.kind != place_kind::fd_now) {
    write_all_out(where);
    return false;
  }
  if (is_held(where.fd))
    return !(only_asks && slot_of(where.fd).is_for == use::read) && let_go(where.fd);
  mind_same_file(where.fd);
  return false;
}

namespace {

/// Those whose writes wait.
template <class Do>
void each_waiting(Do&& act) {
  if (!has_any()) return;
  for (slot& s : mine->of) {
    int const fd = s.fd_after.load() - 1;
    if (fd >= 0 && s.is_for != use::read && has_any_left(s)) act(s, fd);
  }
}

bool is_named(place const& where, slot const& s) {
  file f;
  return where.kind == place_kind::path && identify_cached(where, f) && is_its(s, f);
}

}  // namespace

void write_all_out(place const& where) {
  constexpr std::int64_t soon_ns = 5'000'000'000;  // the keepers see in three that one hangs
  std::int64_t until_ns = 0;                       // for all of them together
  each_waiting([&](slot& s, int fd) {
    bool is_done = false;
    if (s.is_for == use::strict) {
      if (until_ns == 0) until_ns = now_ns() + soon_ns;
      is_done = flush_until(s, fd, until_ns) || !is_named(where, s);
    }
    if (!is_done) flush(s, fd, amount::all);
  });
}

void mind_stream(FILE* f) {
  if (!has_any()) return;
  if (f == nullptr)
    write_all_out();
  else if (int const fd = fd_of(f); fd >= 0)
    mind(on_fd(fd));
}

void write_all_out_at_last() {
  each_waiting([](slot& s, int fd) { flush(s, fd, amount::all); });
}

bool let_all_go() {
  if (may_look()) forget_leases();
  if (!has_any()) return false;
  bool was_any = false;
  for (slot& s : mine->of)
    if (int const fd = s.fd_after.load() - 1; fd >= 0)
      was_any |= flush(s, fd, amount::all_and_let_go);
  return was_any;
}

void share_all() {
  if (!may_look()) return;
  std::uint64_t const now = mine->opens.load();
  std::uint64_t seen = mine->shared_until.load();  // first: nobody holds one again in between
  while (seen < now && !mine->shared_until.compare_exchange_weak(seen, now)) {
  }
  let_all_go();
}

bool may_be_gathered(int fd) {
  sys::file_identity f;
  // Of a strict one the kernel knows who else has it, and a mapping is one of these.
  std::uint32_t const targets = may_look() ? set->written_targets & ~set->strict_targets : 0;
  if (targets == 0) return false;
  if (is_of(targets, entry_of_fd(fd))) return true;
  // By another name it may lie in a target.
  if (!sys::identify(fd, "", sys::at_empty_path, f) || !S_ISREG(f.mode)) return false;
  return f.links > 1 || is_held_elsewhere(nullptr, fd, {f.device, f.inode, true});
}

unsigned held_entry(int fd) { return has_any() && is_held(fd) ? slot_of(fd).entry : entry_unknown; }

int take_error(int fd) {
  if (!may_look() || !has_place(fd)) return 0;
  if (mine->error[fd].load(std::memory_order_relaxed) == 0) return 0;
  return mine->error[fd].exchange(0);
}

void stand_back() {
  if (!may_look()) return;
  mine->standing_back.fetch_add(1);
  let_all_go();
}

// A child of fork, whose state is new, may end what its parent began.
void resume() {
  if (!may_look()) return;
  unsigned now = mine->standing_back.load();
  while (now != 0 && !mine->standing_back.compare_exchange_weak(now, now - 1)) {
  }
}

void before_start() {
  stand_back();
  share_all();
}

void after_start() {
  share_all();
  resume();
}

}  // namespace sluice::gather
