// SPDX-License-Identifier: Apache-2.0
// fsync and fdatasync of durable targets: which way each takes, and that way. Raw system calls, so
// errno is set here as libc would.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "name_buffer.h"
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

constexpr std::uint64_t not_ours =
    abi::order_native | abi::order_bypass | abi::order_logged | abi::order_moved;

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

// The directory of a file, by its name: its programs sync it after each new file.
bool is_made_where_synced(int fd) {
  if (durable.area->head.own_directories.load() == 0) return false;
  name_buffer name;
  int length = name.ask(fd);
  char* const path = name.text();
  while (length > 1 && path[--length] != '/') {
  }
  if (length < 2) return false;
  path[length] = 0;
  file_now d;
  if (!see(sys::at_cwd, path, 0, d)) return false;
  std::uint64_t const flags = flags_of(d);
  return S_ISDIR(d.mode) && (flags & abi::order_own) != 0 && (flags & not_ours) == 0;
}

// A change of something else than bytes leaves a ctime that is not the mtime, unless bytes were
// written after it. What is durable but for the bytes the daemon has to know, in all areas.
sync_way choose_own(sync_job& j, bool is_own) {
  bool const keeps_all = j.kind == order_request::fsync;
  change const c = keeps_all && !j.file.is_written ? change::other : change_of(j.file);
  if (c == change::other || (c == change::size && !is_own)) return sync_way::journal;
  if (!is_own && !enter_lone()) return sync_way::journal;
  if (c == change::bytes) j.kind = order_request::fdatasync;
  return is_own ? sync_way::kernel : sync_way::lone;
}

// A program syncs a file by itself when the journal has nothing of it and would gain nothing.
// The flags are read after the writes, so whatever the daemon journals later contains those writes.
// Names that it journals later were removed after this fsync of their directory began.
sync_way choose(sync_job& j) {
  if ((j.seen & abi::order_apart) != 0) return sync_way::own;
  if ((j.seen & not_ours) != 0) return sync_way::journal;
  bool const is_own = (j.seen & abi::order_own) != 0;
  if (!S_ISREG(j.file.mode)) return is_own ? sync_way::kernel : sync_way::journal;
  if (is_own || (j.seen & abi::order_lone) != 0) return choose_own(j, is_own);
  // sqlite's journal is synced twice, because it has a header of its own.
  return is_made_where_synced(j.fd) && take_first_sync(j.file) ? sync_way::kernel
                                                               : sync_way::journal;
}

// What is mounted below a durable directory is not the journal's: somebody may want to unmount it,
// and a file that the daemon holds would keep it busy.
bool is_mounted_below(file_now const& f) {
  core::ruleset const& rules = stage.mine->rules;
  for (unsigned t = 0; t < core::max_targets && t < rules.target_count; ++t)
    if ((durable.targets >> t & 1) != 0 && rules.target[t].device == f.device) return false;
  return true;
}

}  // namespace

static int sync_by(sync_job const& j) {
  switch (j.where) {
    case sync_way::own:
      return sync_own(j.fd, j.file, j.kind);
    case sync_way::sent_back:
      return sync_sent_back(j.fd, j.file, j.kind);
    case sync_way::home:
      return without_daemon(j.fd, j.file, j.kind);
    default:
      return sync_now(j.fd, j.kind);
  }
}

sync_job look_before_sync(int fd, order_request kind) {
  sync_job j = {fd, kind, sync_way::kernel, {}, 0, 0};
  file_now& f = j.file;
  long flags = 0;
  if (!see_open(fd, f, flags)) return j;
  if (S_ISDIR(f.mode)) j.kind = order_request::directory;
  j.late_error = late_error(f);
  // Another job, or a program before it was mounted there, may have brought it into the journal.
  bool const is_foreign = is_mounted_below(f) && !is_logged(f);
  if (is_foreign) count(order_count::alone);
  if (j.late_error != 0 || is_foreign) return j;
  if (is_pending(fd)) note_whole(f);  // stdio keeps bytes back, or wrote them without our seeing
  // Who opened it, or writes by it, where no stage looks (a ring, a raw call) leaves no other
  // trace.
  if (S_ISREG(f.mode) && writes_past_the_log(flags)) bypass(fd, f);
  j.seen = flags_of(f);
  j.where = sync_way::undecided;
  return j;
}

// The daemon's open would break a lease that a program has from before it had a stage.
bool is_for_daemon(sync_job& j) {
  if (!S_ISREG(j.file.mode) || is_watched(j.file)) return true;
  if (sys::call(SYS_fcntl, j.fd, F_GETLEASE) != F_WRLCK) return true;
  bypass(j.fd, j.file);
  j.seen = flags_of(j.file);
  return false;
}

int finish(sync_job& j) {
  if (j.late_error != 0) return outcome(j.late_error);
  if (j.where == sync_way::undecided) {
    j.where = choose(j);
    if (j.where == sync_way::journal && !is_for_daemon(j)) j.where = choose(j);
    if (j.where == sync_way::own) count(order_count::bypassed);
    if (j.where == sync_way::kernel || j.where == sync_way::lone) count(order_count::alone);
  }
  if (j.where == sync_way::journal) {
    answer const a = ask(j.kind, j.fd, j.file);
    if (a.what == answer::done) {
      count(order_count::answered);
      return outcome(a.error);
    }
    j.where = a.what == answer::native ? sync_way::sent_back : sync_way::home;
  }
  int const error = sync_by(j);
  if (j.where == sync_way::lone) leave_lone();
  return outcome(error);
}

int make_durable(int fd, order_request kind) {
  sync_job j = look_before_sync(fd, kind);
  return finish(j);
}

}  // namespace sluice::order
