// SPDX-License-Identifier: Apache-2.0
// What an open does to a file of a durable target: makes it, or cuts it.
#include <fcntl.h>
#include <sys/stat.h>

#include "meter.h"
#include "order/barriers.h"
#include "order/bodies.h"
#include "sys.h"

namespace sluice::order {

bool look_at_ours(int fd, file_now& f) {
  return may_be_durable(fd) && see(fd, f) && S_ISREG(f.mode);
}

opening before_open(int dir, char const* path, int flags) {
  opening o = {false, (flags & O_TRUNC) != 0, dir, path};
  // Of a file that is not noted the first fsync is the kernel's.
  bool const may_create = (flags & O_CREAT) != 0 && (flags & O_TMPFILE) != O_TMPFILE;
  if (!may_create || is_unwatched() || !can_read_text(path) || !sees()) return o;
  o.creates = (flags & O_EXCL) != 0 ||
              sys::call(SYS_faccessat, dir, sys::as_long(path), 0 /* F_OK */) == -ENOENT;
  return o;
}

void after_open(opening const& o, int fd) {
  if (fd < 0 || (!o.creates && !o.cuts) || was_unwatched()) return;
  // What the table says of this number is about the file that had it before.
  if (may_touch_table()) set_fd(fd, entry_of_newborn(look_up_path(o.dir, o.path)));
  file_now f;
  if (!look_at_ours(fd, f)) return;
  if (o.creates && f.size == 0)
    note_created(f);
  else if (o.cuts)
    note_cut(f, 0);
}

}  // namespace sluice::order
