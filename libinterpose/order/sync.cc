// SPDX-License-Identifier: Apache-2.0
// Asking the log daemon, and going on without it. A stage waits as long as the daemon's heart
// beats: the disk may be slow. When it stops, the fallback of abi/README.md: flag, fsync, mark,
// fsync. Raw system calls, so errno is set here as libc would.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "loaded.h"
#include "order/ask.h"
#include "order/home.h"
#include "sys.h"

namespace sluice::order {

using abi::order_count;
using abi::order_request;

namespace {

constexpr std::int64_t slice_ns = 50'000'000;
// A heart that beats beside a loop that hangs: then we go on without it as well.
constexpr std::int64_t untaken_ns = 2'000'000'000, longest_ns = 60'000'000'000;

// What came of asking. none: nobody answered.
struct answer {
  enum { none, done, native } what;
  int error;
};

}  // namespace

bool heart_beats(std::int64_t at_ns) { return abi::heart_beats(durable.area->head, at_ns); }

order_slot* claim_slot(std::uint32_t& user) {
  auto const tid = static_cast<std::uint32_t>(sys::call(SYS_gettid));
  order_slot* const s = abi::claim_slot(*durable.area, tid, user);
  if (s == nullptr) count(order_count::no_slot);
  return s;
}

bool post(order_slot& s, std::uint32_t user, std::uint32_t kind, int fd, file_now const& f) {
  auto const pid = static_cast<std::uint32_t>(sys::call(SYS_getpid));
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

namespace {

answer wait_for(order_slot& s, std::uint32_t user, std::int64_t since_ns) {
  for (;;) {
    std::uint32_t const seen = s.word.load();
    if (seen == word_of(user, slot_state::done)) {
      std::int32_t const result = s.result.load();
      // Who swaps it free knows that nobody took the slot, and the result, away meanwhile.
      if (!swap(s, user, slot_state::done, slot_state::free)) return {answer::none, 0};
      if (result == abi::go_native) return {answer::native, 0};
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

// 0, or the error number: what was written before is at home wherever the log has something of it.
// With `is_synced` sync(2) has done that, and the durable targets only tell of errors. Other file
// systems are not waited for: they may hang. `also`: a device that has to be among them; 0 none.
int sync_home(bool is_synced, std::uint64_t also = 0) {
  core::ruleset const& rules = stage.mine->rules;
  std::uint64_t left[abi::order_log_devices + 1];
  for (unsigned i = 0; i < abi::order_log_devices; ++i)
    left[i] = is_synced ? 0 : durable.area->head.log_devices[i].load();
  left[abi::order_log_devices] = also;
  for (unsigned t = 0; t < core::max_targets && t < rules.target_count; ++t) {
    if ((durable.targets >> t & 1) == 0) continue;
    auto const root = core::view(rules, rules.target[t].path);
    char path[abi::order_path_bytes];
    if (root.size() >= sizeof path) return ENAMETOOLONG;
    __builtin_memcpy(path, root.data(), root.size());
    path[root.size()] = 0;
    long const fd = sys::call(SYS_openat, sys::at_cwd, sys::as_long(path),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (sys::failed(fd)) return static_cast<int>(-fd);
    file_now f;
    long const r = see(static_cast<int>(fd), f) ? sync_file_system(static_cast<int>(fd)) : -EIO;
    sys::call(SYS_close, fd);
    if (sys::failed(r)) return static_cast<int>(-r);
    for (auto& device : left)
      if (device == f.device) device = 0;
  }
  for (auto const device : left)
    if (device != 0) return EXDEV;
  return 0;
}

bool mark_log() {
  abi::order_header const& h = durable.area->head;
  long const opened = sys::call(SYS_openat, sys::at_cwd, sys::as_long(h.log_path),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (sys::failed(opened)) return false;
  int const fd = static_cast<int>(opened);
  file_now f;
  bool const good = see(fd, f) && f.inode == h.log_inode && f.device == h.log_device &&
                    set_mark(fd, f) == 0 && sync_now(fd, order_request::fsync) == 0;
  sys::call(SYS_close, fd);
  return good;
}

// Nobody is there to empty the log, and what is synced now must not be undone by it: when all that
// it has is safe at home, the log says so of itself. Noted first, so that a daemon that was only
// slow acknowledges nothing that it would have to hold. False: that was done before.
bool begin_void() {
  abi::order_header& h = durable.area->head;
  if ((h.voided.load() & abi::order_void_done) != 0) return false;
  h.voided.fetch_add(1);
  h.voided.fetch_or(abi::order_void);
  return true;
}

void end_void(bool is_synced) {
  abi::order_header& h = durable.area->head;
  bool const good = h.refused.load() == 0 && sync_home(is_synced) == 0 && mark_log();
  h.voided.fetch_or(good ? abi::order_void_done : abi::order_void_failed);
  h.voided.fetch_sub(1);
  count(good ? order_count::marked : order_count::mark_failed);
}

// Counted in and `native`: null when the inode has no place, then its set says the same for good.
abi::order_inode* count_in(abi::order_set& s, std::uint64_t key) {
  for (unsigned round = 0; round < 16; ++round) {
    unsigned const w = abi::find_or_claim(s, key);
    if (w == abi::order_ways) break;
    abi::order_inode& i = s.way[w];
    i.state.fetch_add(abi::order_fallback_one);
    i.state.fetch_or(abi::order_native);
    if (s.key[w].load() == key) return &i;
    i.state.fetch_sub(abi::order_fallback_one);
  }
  s.overflow.store(1);
  return nullptr;
}

// Home has lost bytes that the log has. The error that holds: the first one.
int tell_refused(int error) {
  std::uint32_t first = 0;
  bool const is_first =
      durable.area->head.refused.compare_exchange_strong(first, static_cast<std::uint32_t>(error));
  return is_first ? error : static_cast<int>(first);
}

// 0, or the error number of the sync after the mark. A file that takes no mark has its log void;
// but where nothing can be changed any more the sync before it, which told of no error, was none.
int mark_file(int fd, file_now const& f, order_request kind, abi::order_inode* i) {
  if (int const refused = set_mark(fd, f); refused != 0) {
    // It may be made read-only while nobody writes it, and that is no loss.
    bool const is_lost = refused == EIO || (refused == EROFS && is_written_by(fd));
    if (is_lost) return tell_refused(refused);
    bool const is_tried = (durable.area->head.voided.load() & abi::order_void_failed) != 0;
    if (!is_tried && begin_void()) end_void(false);
    return 0;
  }
  count(order_count::marked);
  int const error = sync_now(fd, kind == order_request::drain ? kind : order_request::fsync);
  if (error == 0 && i != nullptr) i->state.fetch_or(abi::order_marked);
  return error;
}

std::uint64_t flags_of(file_now const& f) {
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, f.device, f.inode);
  return key == abi::no_key ? 0 : abi::state_of(a, abi::set_of(a, key), key);
}

// The kernel's sync of a file that the log may have as well. What the log has and home lost is not
// made good by a sync of what is left: an error is told until a daemon has replayed the log, also
// one that nobody but us has seen.
int sync_own(int fd, file_now const& f, order_request kind) {
  int const error = sync_now(fd, kind);
  if (is_of_disk(error) && (flags_of(f) & abi::order_logged) != 0) tell_refused(error);
  return error != 0 ? error : refused_at_home(f);
}

// The daemon is dead, silent, or could not: 0 or the error number of the kernel's fsync.
int without_daemon(int fd, file_now const& f, order_request kind) {
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, f.device, f.inode);
  if (key == abi::no_key) return sync_now(fd, kind);  // nobody can log it
  abi::order_inode* const i = count_in(abi::set_of(a, key), key);
  int error = sync_own(fd, f, kind);
  bool const had_log = a.head.generation.load() != 0;
  bool const is_void = (a.head.voided.load() & abi::order_void_done) != 0;
  bool const is_marked = i != nullptr && (i->state.load() & abi::order_marked) != 0;
  if (error == 0 && had_log && !is_marked && !is_void) error = mark_file(fd, f, kind, i);
  if (i != nullptr) i->state.fetch_sub(abi::order_fallback_one);
  return error;
}

int outcome(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// What fsync keeps beside bytes and size is as it was: 0 is no such word. A change of something
// else than bytes leaves a ctime that is not the mtime, unless bytes were written after it.
std::uint64_t lone_word_of(int fd, bool is_data_only) {
  struct statx x;
  if (sys::failed(sys::call(SYS_statx, fd, sys::as_long(""), sys::at_empty_path, STATX_BASIC_STATS,
                            sys::as_long(&x))))
    return 0;
  bool const is_written =
      x.stx_ctime.tv_sec == x.stx_mtime.tv_sec && x.stx_ctime.tv_nsec == x.stx_mtime.tv_nsec;
  if (!is_data_only && !is_written) return 0;
  return abi::lone_word({x.stx_size, x.stx_mode, x.stx_uid, x.stx_gid, x.stx_nlink});
}

constexpr std::uint64_t not_ours =
    abi::order_native | abi::order_bypass | abi::order_logged | abi::order_moved;

// Only bytes of it were overwritten since the daemon knew all of it durable.
bool is_overwrite(int fd, file_now const& f, order_request kind) {
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, f.device, f.inode);
  std::uint64_t const word = lone_word_of(fd, kind == order_request::fdatasync);
  bool is_so = word != 0;
  abi::order_set& s = abi::set_of(a, key);
  abi::each_way(s, key, [&](unsigned w) { is_so &= s.way[w].daemon_word.load() == word; });
  return is_so;
}

// One program alone overwrites bytes of a file that the log has nothing of: its own fdatasync takes
// one flush as well, and asks nobody. False: not so, ask.
bool sync_alone(int fd, file_now const& f, order_request kind, int& error) {
  if (!is_overwrite(fd, f, kind)) return false;
  std::atomic<std::uint32_t>& inside = durable.area->head.lone;
  bool const is_alone = inside.fetch_add(1) == 0;
  if (is_alone) error = sync_now(fd, order_request::fdatasync);
  // The daemon sets it to 0 now and then, for those that were killed here.
  std::uint32_t left = inside.load();
  while (left != 0 && !inside.compare_exchange_weak(left, left - 1)) {
  }
  return is_alone;
}

// Its first two syncs: sqlite's journal has a header of its own. The daemon takes it for an old
// file from then on, and has no baseline of it.
bool takes_first_sync(file_now const& f) {
  if (f.birth == 0) return false;
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, f.device, f.inode),
                      once = f.birth & ~std::uint64_t{1};
  bool is_new = false;
  abi::order_set& s = abi::set_of(a, key);
  abi::each_way(s, key, [&](unsigned w) {
    std::uint64_t seen = s.way[w].created.load();
    if (seen != f.birth && seen != once) return;
    is_new |= s.way[w].created.compare_exchange_strong(seen, seen == once ? 0 : once);
  });
  return is_new;
}

// The directory of a file, by its name: its programs sync it after each new file.
bool is_made_where_synced(int fd) {
  if (durable.area->head.own_directories.load() == 0) return false;
  char path[abi::order_path_bytes];
  unsigned length = name_of_fd(fd, path, sizeof path);
  if (length == sizeof path) return false;
  while (length > 1 && path[--length] != '/') {
  }
  path[length] = 0;
  file_now d;
  if (length < 2 || !see(sys::at_cwd, path, 0, d)) return false;
  std::uint64_t const flags = flags_of(d);
  return S_ISDIR(d.mode) && (flags & abi::order_own) != 0 && (flags & not_ours) == 0;
}

// What the log is of no use to, and has nothing of, its program syncs by itself. The flags were
// looked at after the writes: what the daemon logs from then on it reads from the file as it is
// now, or later. What it logs of a directory from then on was removed after its fsync began.
bool sync_by_itself(int fd, file_now const& f, order_request kind, std::uint64_t seen, int& error) {
  if ((seen & not_ours) != 0) return false;
  if (durable.area->head.aside.load() != 0 && heart_beats(now_ns())) {
    error = sync_now(fd, kind);
    return true;
  }
  if ((seen & abi::order_own) != 0) {
    bool const is_data = S_ISREG(f.mode) && is_overwrite(fd, f, kind);
    error = sync_now(fd, is_data ? order_request::fdatasync : kind);
    return true;
  }
  if ((seen & abi::order_lone) != 0) return sync_alone(fd, f, kind, error);
  if (!S_ISREG(f.mode) || !is_made_where_synced(fd) || !takes_first_sync(f)) return false;
  error = sync_now(fd, kind);
  return true;
}

// The log has no live record of the inode any more, or recovery is told to leave it alone.
void drain(int fd, file_now const& f) {
  if (durable.area->head.generation.load() == 0) return;  // there never was a log
  answer const a = ask(order_request::drain, fd, f);
  if (a.what != answer::done || a.error != 0) without_daemon(fd, f, order_request::drain);
}

}  // namespace

int refused_at_home(file_now const& f) {
  bool const is_logged = (flags_of(f) & abi::order_logged) != 0;
  return is_logged ? static_cast<int>(durable.area->head.refused.load()) : 0;
}

int sync_file(int fd, file_now const& f, order_request kind, bool is_sent_back) {
  if (is_sent_back) {
    count(order_count::sent_back);
    if ((flags_of(f) & abi::order_logged) == 0) return sync_now(fd, kind);
  }
  return without_daemon(fd, f, kind);
}

int sync_everything(std::uint64_t device) {
  bool const is_void = before_sync();
  if (device == 0) sys::call(SYS_sync);
  int error = sync_home(false, device);
  // What could not be reached by its tree: then all of the machine. That tells of no errors.
  bool const is_told = error == 0 || is_of_disk(error);
  if (!is_told) {
    sys::call(SYS_sync);
    error = 0;
  }
  after_sync(is_void, false);
  return error;
}

bool is_logged(file_now const& f) { return (flags_of(f) & abi::order_logged) != 0; }

bool is_logged(int fd) {
  file_now f;
  return sees() && see(fd, f) && is_logged(f);
}

void let_go(int fd, file_now const& f) {
  if (S_ISREG(f.mode) && is_logged(f)) drain(fd, f);
}

static int sync_any(int fd, order_request kind, barrier* later) {
  file_now f;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  bool const is_file = !sys::failed(flags) && (flags & O_PATH) == 0 && see(fd, f) &&
                       (S_ISREG(f.mode) || S_ISDIR(f.mode));
  if (!is_file) return outcome(sync_now(fd, kind));
  if (S_ISDIR(f.mode)) kind = order_request::directory;
  if (int const late = late_error(f); late != 0) return outcome(late);
  if (is_pending(fd)) note_whole(f);  // stdio keeps bytes back, or wrote them without our seeing
  // Who opened it, or writes by it, where no stage looks (a ring, a raw call) leaves no other
  // trace.
  if (S_ISREG(f.mode) && writes_past_the_log(flags)) bypass(fd, f);
  std::uint64_t const seen = flags_of(f);
  if ((seen & abi::order_apart) != 0) {
    count(order_count::bypassed);
    return outcome(sync_own(fd, f, kind));
  }
  if (later != nullptr && post_barrier(kind, fd, f, seen, *later)) return 0;
  int error = 0;
  if (sync_by_itself(fd, f, kind, seen, error)) {
    count(order_count::alone);
    return outcome(error);
  }
  answer const a = ask(kind, fd, f);
  if (a.what == answer::done) {
    count(order_count::answered);
    return outcome(a.error);
  }
  return outcome(sync_file(fd, f, kind, a.what == answer::native));
}

int make_durable(int fd, order_request kind, barrier* later) {
  loaded::end_if_cancelled();
  return sync_any(fd, kind, later);
}

int make_written_durable(int fd, order_request kind) { return sync_any(fd, kind, nullptr); }

void bypass(int fd, file_now const& f) {
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, f.device, f.inode);
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(a, key);
  if ((abi::state_of(a, s, key) & abi::order_apart) != 0) return;
  // Whoever finds the flag, but not yet that the drain after it is over, drains as well: the log
  // may still have records that must not come over what is written next.
  auto const note = [&](std::uint64_t flag) {
    return abi::note_inode(s, key, [&](abi::order_inode& i) { i.state.fetch_or(flag); });
  };
  if (!note(abi::order_bypass)) s.overflow.store(1);
  drain(fd, f);
  note(abi::order_apart);
}

bool before_sync() {
  if (!sees() || durable.area->head.generation.load() == 0) return false;
  return ask(order_request::sync_all, -1, {}).what != answer::done && begin_void();
}

void after_sync(bool is_void, bool was_all) {
  if (is_void) end_void(was_all);
}

void go_blind() {
  wait_for_barriers();
  durable.area->head.blind.fetch_add(1);
  after_sync(before_sync(), false);
}

void see_again() { durable.area->head.blind.fetch_sub(1); }

}  // namespace sluice::order
