// SPDX-License-Identifier: Apache-2.0
// Calls that nobody meters, and before which what waits must be written out: those that change the
// rights of the process, watches, and what libc writes, or gives away, by itself. Few programs make
// them, so libc's own is looked up each time. They may be made in signal handlers as libc's may.
#include <errno.h>

#include <cstdint>

#include "loaded.h"
#include "meter.h"
#include "small/gather.h"

namespace sluice::gather {

namespace {

// Until the call is over nothing is held, so the rights of the moment are those of each write.
class standing_back {
 public:
  standing_back() { stand_back(); }
  ~standing_back() { resume(); }
  standing_back(standing_back const&) = delete;
  standing_back& operator=(standing_back const&) = delete;
};

// This libc has no such function.
int refused() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

#define EXPORTED(symbol, result, parameters)          \
  extern "C" __attribute__((visibility("default")))   \
  result sluice_##symbol parameters __asm__(#symbol); \
  result sluice_##symbol parameters

#define FOUND(symbol)                           \
  reinterpret_cast<decltype(&sluice_##symbol)>( \
      loaded::find({#symbol, loaded::hash_of(#symbol), nullptr}))

#define BEFORE_LIBC(symbol, parameters, arguments, first)                     \
  EXPORTED(symbol, void, parameters) {                                        \
    first;                                                                    \
    if (auto* const found = FOUND(symbol); found != nullptr) found arguments; \
  }

#define AROUND_LIBC(symbol, parameters, arguments, first)  \
  EXPORTED(symbol, int, parameters) {                      \
    first;                                                 \
    auto* const found = FOUND(symbol);                     \
    return found != nullptr ? found arguments : refused(); \
  }

// --- rights: no form of prctl(2) takes some away that count at a write
#define NEW_RIGHTS(symbol, parameters, arguments) \
  AROUND_LIBC(symbol, parameters, arguments, standing_back const quiet)

NEW_RIGHTS(setuid, (unsigned to), (to))
NEW_RIGHTS(seteuid, (unsigned to), (to))
NEW_RIGHTS(setreuid, (unsigned real, unsigned to), (real, to))
NEW_RIGHTS(setresuid, (unsigned real, unsigned to, unsigned saved), (real, to, saved))
NEW_RIGHTS(setgid, (unsigned to), (to))
NEW_RIGHTS(setegid, (unsigned to), (to))
NEW_RIGHTS(setregid, (unsigned real, unsigned to), (real, to))
NEW_RIGHTS(setresgid, (unsigned real, unsigned to, unsigned saved), (real, to, saved))
NEW_RIGHTS(setgroups, (std::size_t count, unsigned const* groups), (count, groups))
NEW_RIGHTS(initgroups, (char const* user, unsigned group), (user, group))

// Those of one thread: what it gathers is not another's to write out.
AROUND_LIBC(setfsuid, (unsigned to), (to), end_for_good())
AROUND_LIBC(setfsgid, (unsigned to), (to), end_for_good())
AROUND_LIBC(capset, (void* header, void const* to), (header, to), end_for_good())

// --- a watch that the process was given, or began before this image
AROUND_LIBC(inotify_add_watch, (int fd, char const* path, unsigned events), (fd, path, events),
            end_for_good())
AROUND_LIBC(fanotify_mark,
            (int fd, unsigned flags, std::uint64_t events, int dir, char const* path),
            (fd, flags, events, dir, path), end_for_good())

// --- standard descriptors: libc's own dup2 and close are not seen
EXPORTED(login_tty, int, (int fd)) {
  standing_back const quiet;
  note_closed(0, 2);
  if (fd > 2) note_closed(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
  auto* const found = FOUND(login_tty);
  int const r = found != nullptr ? found(fd) : refused();
  if (r != 0 || !may_touch_table()) return r;
  for (int n : {0, 1, 2, fd}) set_fd(n, entry_unknown);
  return r;
}

// --- what libc writes by itself
BEFORE_LIBC(backtrace_symbols_fd, (void* const* frames, int count, int fd), (frames, count, fd),
            mind(on_fd(fd)))
BEFORE_LIBC(_flushlbf, (), (), write_all_out())
AROUND_LIBC(fcloseall, (), (), write_all_out())
BEFORE_LIBC(setbuf, (FILE * f, char* buffer), (f, buffer), mind_stream(f))
BEFORE_LIBC(setbuffer, (FILE * f, char* buffer, std::size_t size), (f, buffer, size),
            mind_stream(f))
BEFORE_LIBC(setlinebuf, (FILE * f), (f), mind_stream(f))
BEFORE_LIBC(updwtmp, (char const* path, void const* entry), (path, entry), write_all_out())
BEFORE_LIBC(updwtmpx, (char const* path, void const* entry), (path, entry), write_all_out())

}  // namespace sluice::gather
