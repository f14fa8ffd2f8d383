// SPDX-License-Identifier: Apache-2.0
#include "order/home.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "sys.h"

namespace sluice::order {

using abi::order_request;

namespace {

// See daemon/policy/sync.h.
long why_given_up(int fd) {
  long const r = sys::call(SYS_fremovexattr, fd, sys::as_long("user.sluice.none"));
  return r == -EIO || r == -EROFS || r == -EUCLEAN || r == -ESHUTDOWN ? r : 0;
}

// On btrfs the fsync of a directory does not keep what was removed from it while somebody has that
// open, and the daemon has.
bool loses_removals(int directory) {
  struct statfs fs;
  return !sys::failed(sys::call(SYS_fstatfs, directory, sys::as_long(&fs))) &&
         fs.f_type == BTRFS_SUPER_MAGIC;
}

}  // namespace

long sync_file_system(int fd) {
  constexpr long is_read_only = 1;  // ST_RDONLY
  struct statfs fs;
  long const r = sys::call(SYS_syncfs, fd);
  if (sys::failed(r)) return r;
  long const seen = sys::call(SYS_fstatfs, fd, sys::as_long(&fs));
  if (sys::failed(seen)) return seen;
  return (fs.f_flags & is_read_only) != 0 ? -EROFS : why_given_up(fd);
}

bool is_written_by(int fd) {
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  return !sys::failed(flags) && (flags & O_ACCMODE) != O_RDONLY;
}

int sync_now(int fd, order_request kind) {
  bool const is_all =
      kind == order_request::drain || (kind == order_request::directory && loses_removals(fd));
  long const call = kind == order_request::fdatasync ? SYS_fdatasync : SYS_fsync;
  long const r = is_all ? sync_file_system(fd) : sys::call(call, fd);
  return sys::failed(r) ? static_cast<int>(-r) : 0;
}

int set_mark(int fd, file_now const& f) {
  abi::order_header const& h = durable.area->head;
  abi::order_mark mark = {};
  __builtin_memcpy(mark.log_id, h.log_id, sizeof mark.log_id);
  mark.generation = h.generation.load();
  mark.incarnation = h.incarnation.load();
  mark.inode = f.inode;
  mark.birth = f.birth;
  long const r = sys::call(SYS_fsetxattr, fd, sys::as_long(abi::order_mark_name),
                           sys::as_long(&mark), sizeof mark, 0);
  return sys::failed(r) ? static_cast<int>(-r) : 0;
}

}  // namespace sluice::order
