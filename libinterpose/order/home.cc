// SPDX-License-Identifier: Apache-2.0
#include "order/home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "name_buffer.h"
#include "sys.h"

namespace sluice::order {

using abi::order_count;
using abi::order_request;

namespace {

// A call about a descriptor.
long call_on(int fd, long number, long a = 0, long b = 0, long c = 0) {
  return sys::act(number, fd, a, b, c, 0);
}

// See daemon/base/sync.h: what is asked, and when that may wait for somebody who holds its lock.
bool is_private(int fd) {
  struct stat st;
  constexpr unsigned others = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  return !sys::failed(call_on(fd, SYS_fstat, sys::as_long(&st))) && (st.st_mode & others) == 0 &&
         st.st_uid == static_cast<uid_t>(sys::call(SYS_geteuid));
}

long said(long error) {
  return error == -EIO || error == -EROFS || error == -EUCLEAN || error == -ESHUTDOWN ? error : 0;
}

long ask(long fd) {
  return call_on(static_cast<int>(fd), SYS_fremovexattr, sys::as_long("user.sluice.none"));
}

long why_given_up(int fd) {
  if (is_private(fd)) return said(ask(fd));
  long const own =
      sys::call(SYS_openat, fd, sys::as_long("."), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (sys::failed(own) && (said(own) != 0 || own == -EACCES)) return said(own);
  long const error = ask(sys::failed(own) ? fd : own);
  if (!sys::failed(own)) sys::call(SYS_close, own);
  return said(error);
}

}  // namespace

long sync_file_system(int fd) {
  constexpr long is_read_only = 1;  // ST_RDONLY
  struct statfs fs;
  long const r = call_on(fd, SYS_syncfs);
  if (sys::failed(r)) return r;
  long const seen = call_on(fd, SYS_fstatfs, sys::as_long(&fs));
  if (sys::failed(seen)) return seen;
  return (fs.f_flags & is_read_only) != 0 ? -EROFS : why_given_up(fd);
}

bool is_written_by(int fd) {
  long const flags = call_on(fd, SYS_fcntl, F_GETFL);
  return !sys::failed(flags) && (flags & O_ACCMODE) != O_RDONLY;
}

int sync_now(int fd, order_request kind) {
  long const call = kind == order_request::fdatasync ? SYS_fdatasync : SYS_fsync;
  long const r = kind == order_request::drain ? sync_file_system(fd) : call_on(fd, call);
  return sys::failed(r) ? static_cast<int>(-r) : 0;
}

namespace {

// Recovery is to leave this file alone. The generation is read while we are counted in. 0, or the
// error number.
int set_mark(int fd, file_now const& f) {
  abi::order_header const& h = durable.area->head;
  abi::order_mark mark = {};
  __builtin_memcpy(mark.log_id, h.log_id, sizeof mark.log_id);
  mark.generation = h.generation.load();
  mark.incarnation = h.incarnation.load();
  mark.inode = f.inode;
  mark.birth = f.birth;
  long const r = call_on(fd, SYS_fsetxattr, sys::as_long(abi::order_mark_name), sys::as_long(&mark),
                         sizeof mark);
  return sys::failed(r) ? static_cast<int>(-r) : 0;
}

}  // namespace

int sync_home(bool is_synced, std::uint64_t also) {
  core::ruleset const& rules = stage.mine->rules;
  std::uint64_t left[abi::order_log_devices + 1];
  for (unsigned i = 0; i < abi::order_log_devices; ++i)
    left[i] = is_synced ? 0 : durable.area->head.log_devices[i].load();
  left[abi::order_log_devices] = also;
  for (unsigned t = 0; t < core::max_targets && t < rules.target_count; ++t) {
    if ((durable.targets >> t & 1) == 0) continue;
    auto const root = core::view(rules, rules.target[t].path);
    name_buffer path;
    if (!path.holds(root.size() + 1)) return ENAMETOOLONG;
    __builtin_memcpy(path.text(), root.data(), root.size());
    path.text()[root.size()] = 0;
    long const fd = sys::call(SYS_openat, sys::at_cwd, sys::as_long(path.text()),
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

static bool mark_log() {
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

bool begin_void() {
  abi::order_header& h = durable.area->head;
  if ((h.voided.load() & abi::order_void_done) != 0) return false;
  h.voided.fetch_add(1);
  h.voided.fetch_or(abi::order_void);
  return true;
}

void end_void(bool is_synced) {
  abi::order_header& h = durable.area->head;
  bool const good = h.refused.load() == 0 && sync_home(is_synced, 0) == 0 && mark_log();
  h.voided.fetch_or(good ? abi::order_void_done : abi::order_void_failed);
  h.voided.fetch_sub(1);
  count(good ? order_count::marked : order_count::mark_failed);
}

namespace {

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

// Home has lost bytes that the journal has. The error that holds: the first one.
int tell_refused(int error) {
  std::uint32_t first = 0;
  bool const is_first =
      durable.area->head.refused.compare_exchange_strong(first, static_cast<std::uint32_t>(error));
  return is_first ? error : static_cast<int>(first);
}

// 0, or the error number of the sync after the mark. A file that takes no mark has its journal
// void; but where nothing can be changed any more the sync before it, which told of no error, was
// none.
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

}  // namespace

int refused_at_home(file_now const& f) {
  return is_logged(f) ? static_cast<int>(durable.area->head.refused.load()) : 0;
}

int sync_own(int fd, file_now const& f, order_request kind) {
  int const error = sync_now(fd, kind);
  if (!is_logged(f)) return error;
  if (is_of_disk(error)) tell_refused(error);
  return error != 0 ? error : static_cast<int>(durable.area->head.refused.load());
}

int sync_sent_back(int fd, file_now const& f, order_request kind) {
  count(order_count::sent_back);
  return is_logged(f) ? without_daemon(fd, f, kind) : sync_now(fd, kind);
}

int without_daemon(int fd, file_now const& f, order_request kind) {
  abi::order_area& a = *durable.area;
  if (f.key == abi::no_key) return sync_now(fd, kind);  // no journal can have it
  abi::order_inode* const i = count_in(abi::set_of(a, f.key), f.key);
  int error = sync_own(fd, f, kind);
  bool const had_log = a.head.generation.load() != 0;
  bool const is_void = (a.head.voided.load() & abi::order_void_done) != 0;
  bool const is_marked = i != nullptr && (i->state.load() & abi::order_marked) != 0;
  if (error == 0 && had_log && !is_marked && !is_void) error = mark_file(fd, f, kind, i);
  if (i != nullptr) i->state.fetch_sub(abi::order_fallback_one);
  return error;
}

}  // namespace sluice::order
