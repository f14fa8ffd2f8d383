// SPDX-License-Identifier: Apache-2.0
// Calls that have to wait for barriers (order/barriers.h): changes of names and of attributes, of
// whichever file tree, for where a name leads is asked too seldom to bet an order on it; and what
// ends the process's own knowledge of its barriers: close, exec, exit. What starts another program
// waits as well, because that one knows of none. Of names that are removed it is noted who had
// them. Of files that are given to another owner the journal lets go first.
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "calls.h"
#include "order/barriers.h"
#include "order/bodies.h"
#include "rows.h"

namespace sluice::order {

namespace {

constexpr bool changes(core::op o) {
  switch (o) {
    case core::op::symlink:
    case core::op::unlink:
    case core::op::mkdir:
    case core::op::rmdir:
    case core::op::mknod:
    case core::op::chmod:
    case core::op::chown:
    case core::op::utime:
    case core::op::setxattr:
    case core::op::removexattr:
      return true;
    default:
      return false;
  }
}

constexpr bool removes(core::op o) { return o == core::op::unlink || o == core::op::rmdir; }

// What the journal has of a file is its owner's: recovery does not write it when it is another's by
// then. A name is not opened for that: with the close the program would lose its locks of the file.
void before_giving_away(place const& where) {
  file_now f;
  if (!sees() || is_unwatched()) return;
  bool const is_named = where.path != nullptr;
  if (is_named && !can_read_text(where.path)) return;
  if (!is_named || *where.path == 0) {
    if (see(where.fd, f)) let_go(where.fd, f);
    return;
  }
  if (see(where.fd, where.path, 0, f)) let_go(no_fd, f);
}

}  // namespace

namespace next {
#define GATED(sym) static constinit decltype(real::sym) sym = nullptr;
#define CALL(sym, ...) GATED(sym)
#include "calls.def"
#include "order/order.def"
}  // namespace next

namespace body {

#define CALL(sym, ret, params, args, o, where, ...)                                              \
  static ret sym params {                                                                        \
    int const error = has_barriers() ? closed_for(where) : 0;                                    \
    if (error != 0) return refused<ret>(error);                                                  \
    if constexpr (core::op::o == core::op::chown) before_giving_away(where);                     \
    if constexpr (removes(core::op::o))                                                          \
      return giving_up(sys::at_cwd, place{where}.path, [&]() -> ret { return next::sym args; }); \
    else                                                                                         \
      return next::sym args;                                                                     \
  }
#include "calls.def"

static int unlinkat(int dir, char const* path, int flags) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return giving_up(dir, path, [&] { return next::unlinkat(dir, path, flags); });
}

static int posix_fallocate(int fd, off_t at, off_t size) {
  if (int const error = closed_for(fd); error != 0) return error;
  bypass_if_synced(fd);
  return next::posix_fallocate(fd, at, size);
}

static int close(int fd) {
  if (fd >= 0) before_close(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
  return next::close(fd);
}

static int close_range(unsigned first, unsigned last, int flags) {
  before_close(first, last);
  return next::close_range(first, last, flags);
}

static void closefrom(int first) {
  before_close(first < 0 ? 0 : static_cast<unsigned>(first), ~0u);
  next::closefrom(first);
}

static int closedir(DIR* dir) {
  if (has_barriers() && dir != nullptr) {
    auto const fd = static_cast<unsigned>(::dirfd(dir));
    before_close(fd, fd);
  }
  return next::closedir(dir);
}

static int dup2(int fd, int to) {
  if (fd != to && to >= 0) before_close(static_cast<unsigned>(to), static_cast<unsigned>(to));
  return next::dup2(fd, to);
}

static int dup3(int fd, int to, int flags) {
  if (fd != to && to >= 0) before_close(static_cast<unsigned>(to), static_cast<unsigned>(to));
  return next::dup3(fd, to, flags);
}

static int execve(char const* path, char* const* argv, char* const* envp) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return next::execve(path, argv, envp);
}

static int execveat(int dir, char const* path, char* const* argv, char* const* envp, int flags) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return next::execveat(dir, path, argv, envp, flags);
}

static int fexecve(int fd, char* const* argv, char* const* envp) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return next::fexecve(fd, argv, envp);
}

static int execvpe(char const* file, char* const* argv, char* const* envp) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return next::execvpe(file, argv, envp);
}

#define SPAWN(sym)                                                                       \
  static int sym(int* to, char const* what, void const* actions, void const* attributes, \
                 char* const* argv, char* const* envp) {                                 \
    if (int const error = closed_for_names(); error != 0) return error;                  \
    return next::sym(to, what, actions, attributes, argv, envp);                         \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
SPAWN(pidfd_spawn)
SPAWN(pidfd_spawnp)
#undef SPAWN

static FILE* popen(char const* command, char const* mode) {
  if (int const error = closed_for_names(); error != 0) return refused<FILE*>(error);
  return next::popen(command, mode);
}

static int system(char const* command) {
  if (int const error = closed_for_names(); error != 0) return refused<int>(error);
  return next::system(command);
}

// A parent that waited for us goes on from what we did.
static void _exit(int status) {
  wait_for_barriers();
  next::_exit(status);
}

}  // namespace body

bool changes_names(long number) {
  switch (number) {
#if defined(SYS_unlink)
    case SYS_unlink:
    case SYS_symlink:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_mknod:
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
    case SYS_utime:
    case SYS_utimes:
    case SYS_futimesat:
#endif
    case SYS_unlinkat:
    case SYS_symlinkat:
    case SYS_mkdirat:
    case SYS_mknodat:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fchown:
    case SYS_fchownat:
    case SYS_utimensat:
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_fsetxattr:
    case SYS_removexattr:
    case SYS_lremovexattr:
    case SYS_fremovexattr:
    case SYS_execve:
    case SYS_execveat:
      return true;
    default:
      return false;
  }
}

void before_giving_away_by(long number, long a, long b) {
  switch (number) {
#if defined(SYS_chown)
    case SYS_chown:
    case SYS_lchown:
      return before_giving_away(on_path(sys::path_at(a)));
#endif
    case SYS_fchown:
      return before_giving_away(on_fd(static_cast<int>(a)));
    case SYS_fchownat:
      return before_giving_away(on_at(static_cast<int>(a), sys::path_at(b)));
    default:
      return;
  }
}

name_at name_given_up_by(long number, long a, long b) {
  switch (number) {
#if defined(SYS_unlink)
    case SYS_unlink:
    case SYS_rmdir:
      return {sys::at_cwd, sys::path_at(a)};
#endif
    case SYS_unlinkat:
      return {static_cast<int>(a), sys::path_at(b)};
    default:
      return {sys::at_cwd, nullptr};
  }
}

void stand_between_names() {
#define GATED(sym) STAND_BEFORE_REAL(sym)
#define CALL(sym, ret, params, args, o, ...) \
  if constexpr (changes(core::op::o)) {      \
    GATED(sym)                               \
  }
#include "calls.def"
#include "order/order.def"
}

}  // namespace sluice::order
