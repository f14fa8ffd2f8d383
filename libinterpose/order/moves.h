// SPDX-License-Identifier: Apache-2.0
// Files that get another name before their first fsync. Nobody can tell which of the two names is
// on the disk by then, so that fsync has to be the kernel's. (The same holds for a file that was
// made while nobody noted.)
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "order/barriers.h"
#include "order/bodies.h"
#include "sys.h"

namespace sluice::order {

inline bool see_regular(name_at const& n, file_now& f) {
  return can_read_text(n.path) && *n.path != 0 && see(n.dir, n.path, AT_SYMLINK_NOFOLLOW, f) &&
         S_ISREG(f.mode);
}

/// A call by which what `from` names is named `to`, alone or as well.
template <class Real>
auto moving(name_at from, name_at to, Real&& real_call) {
  file_now f;
  if (int const error = closed_for_names(); error != 0)
    return refused<decltype(real_call())>(error);
  bool const is_seen = sees(), was_noting = is_seen && !is_unwatched();
  bool ours = was_noting && see_regular(from, f);
  if (ours) note_moved(f);
  auto const r = giving_up(from.dir, from.path, real_call);
  if (r != 0) return r;
  // Not noted before, or given by a descriptor.
  if (is_seen && !ours && !was_unwatched()) ours = see_regular(to, f);
  if (ours) note_moved(f);  // of an fsync in between it was taken
  return r;
}

/// Two files may change their names for each other's.
template <class Real>
auto moving_or_swapping(name_at from, name_at to, unsigned flags, Real&& real_call) {
  if ((flags & RENAME_EXCHANGE) == 0) return moving(from, to, real_call);
  return moving(to, from, [&] { return moving(from, to, real_call); });
}

using sys::path_at;

/// Those that change names or attributes among the system calls through syscall(2).
template <class Real>
long changing_names(long number, long a, long b, long c, long d, long e, Real&& raw) {
  auto const dir = static_cast<int>(a), to_dir = static_cast<int>(c);
  switch (number) {
#if defined(SYS_rename)
    case SYS_rename:
    case SYS_link:
      return moving({sys::at_cwd, path_at(a)}, {sys::at_cwd, path_at(b)}, raw);
#endif
#if defined(SYS_renameat)
    case SYS_renameat:
#endif
    case SYS_linkat:
      return moving({dir, path_at(b)}, {to_dir, path_at(d)}, raw);
    case SYS_renameat2:
      return moving_or_swapping({dir, path_at(b)}, {to_dir, path_at(d)}, static_cast<unsigned>(e),
                                raw);
    default:
      if (int const error = changes_names(number) ? closed_for_names() : 0; error != 0)
        return refused<long>(error);
      before_giving_away_by(number, a, b);
      if (name_at const n = name_given_up_by(number, a, b); n.path != nullptr)
        return giving_up(n.dir, n.path, raw);
      return raw();
  }
}

}  // namespace sluice::order
