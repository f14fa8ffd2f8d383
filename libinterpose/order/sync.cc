// SPDX-License-Identifier: Apache-2.0
// fsync and fdatasync of durable targets: which way each takes, and that way. Raw system calls, so
// errno is set here as libc would.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "loaded.h"
#include "order/ask.h"
#include "order/barriers.h"
#include "order/home.h"
#include "order/sync_job.h"
#include "sys.h"

namespace sluice::order {

using abi::order_count;
using abi::order_request;

namespace {

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
bool is_overwrite(sync_job const& j) {
  abi::order_area& a = *durable.area;
  std::uint64_t const key = abi::order_key(a, j.file.device, j.file.inode);
  std::uint64_t const word = lone_word_of(j.fd, j.kind == order_request::fdatasync);
  bool is_so = word != 0;
  abi::order_set& s = abi::set_of(a, key);
  abi::each_way(s, key, [&](unsigned w) { is_so &= s.way[w].daemon_word.load() == word; });
  return is_so;
}

// One program alone overwrites bytes of a file that the journal has nothing of: its own fdatasync
// takes one flush as well, and asks nobody. Who is let in leaves by leave_lone().
void leave_lone() {
  std::atomic<std::uint32_t>& inside = durable.area->head.lone;
  // The daemon sets it to 0 now and then, for those that were killed here.
  std::uint32_t left = inside.load();
  while (left != 0 && !inside.compare_exchange_weak(left, left - 1)) {
  }
}

bool enter_lone() {
  if (durable.area->head.lone.fetch_add(1) == 0) return true;
  leave_lone();
  return false;
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

// What the journal is of no use to, and has nothing of, its program syncs by itself. The flags were
// looked at after the writes: what the daemon writes from then on it reads from the file as it is
// now, or later. What it writes of a directory from then on was removed after its fsync began.
way choose(sync_job& j) {
  if ((j.seen & abi::order_apart) != 0) return way::own;
  if ((j.seen & not_ours) != 0) return way::log;
  if (durable.area->head.aside.load() != 0 && heart_beats(now_ns())) return way::kernel;
  bool const is_file = S_ISREG(j.file.mode);
  if ((j.seen & abi::order_own) != 0) {
    if (is_file && is_overwrite(j)) j.kind = order_request::fdatasync;
    return way::kernel;
  }
  if ((j.seen & abi::order_lone) != 0) {
    if (!is_overwrite(j) || !enter_lone()) return way::log;
    j.kind = order_request::fdatasync;
    return way::lone;
  }
  bool const is_first = is_file && is_made_where_synced(j.fd) && takes_first_sync(j.file);
  return is_first ? way::kernel : way::log;
}

// The daemon did not do it.
way choose_after(answer const& a, sync_job const& j) {
  if (a.what != answer::native) return way::home;
  count(order_count::sent_back);
  return (flags_of(j.file) & abi::order_logged) == 0 ? way::kernel : way::home;
}

}  // namespace

static int sync_by(sync_job const& j) {
  switch (j.where) {
    case way::own:
      return sync_own(j.fd, j.file, j.kind);
    case way::home:
      return without_daemon(j.fd, j.file, j.kind);
    default:
      return sync_now(j.fd, j.kind);
  }
}

int sync_file(int fd, file_now const& f, order_request kind, bool is_sent_back) {
  sync_job j = {fd, kind, way::home, f, 0, 0};
  if (is_sent_back) j.where = choose_after({answer::native, 0}, j);
  return sync_by(j);
}

sync_job look_before_sync(int fd, order_request kind) {
  sync_job j = {fd, kind, way::kernel, {}, 0, 0};
  file_now& f = j.file;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  bool const is_file = !sys::failed(flags) && (flags & O_PATH) == 0 && see(fd, f) &&
                       (S_ISREG(f.mode) || S_ISDIR(f.mode));
  if (!is_file) return j;
  if (S_ISDIR(f.mode)) j.kind = order_request::directory;
  j.late_error = late_error(f);
  if (j.late_error != 0) return j;
  if (is_pending(fd)) note_whole(f);  // stdio keeps bytes back, or wrote them without our seeing
  // Who opened it, or writes by it, where no stage looks (a ring, a raw call) leaves no other
  // trace.
  if (S_ISREG(f.mode) && writes_past_the_log(flags)) bypass(fd, f);
  j.seen = flags_of(f);
  j.where = way::undecided;
  return j;
}

int finish(sync_job& j) {
  if (j.late_error != 0) return outcome(j.late_error);
  if (j.where == way::undecided) {
    j.where = choose(j);
    if (j.where == way::own) count(order_count::bypassed);
    if (j.where == way::kernel || j.where == way::lone) count(order_count::alone);
  }
  if (j.where == way::log) {
    answer const a = ask(j.kind, j.fd, j.file);
    if (a.what == answer::done) {
      count(order_count::answered);
      return outcome(a.error);
    }
    j.where = choose_after(a, j);
  }
  int const error = sync_by(j);
  if (j.where == way::lone) leave_lone();
  return outcome(error);
}

int make_written_durable(int fd, order_request kind) {
  sync_job j = look_before_sync(fd, kind);
  return finish(j);
}

int make_durable(int fd, order_request kind) {
  loaded::end_if_cancelled();
  return make_written_durable(fd, kind);
}

}  // namespace sluice::order
