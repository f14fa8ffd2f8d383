// SPDX-License-Identifier: Apache-2.0
// Calls in a job in which small writes wait or small reads are answered from memory (gather.h,
// strict.cc, reads.cc). Each body is reached in the place of libc's function. Those of rows that
// name a place are made from calls.def; the others stand here. A call on a held descriptor passed
// the wrapper unmetered, so it begins anew when it is let go.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "apart.h"
#include "clock.h"
#include "extras.h"
#include "loaded.h"
#include "meter.h"
#include "received.h"
#include "rows.h"
#include "small/gather.h"
#include "small/leases.h"
#include "stream.h"

namespace sluice::gather {

// The rows without a place that have a body here: BY_HAND(symbol).
#define CALLS_BY_HAND     \
  BY_HAND(close)          \
  BY_HAND(close_range)    \
  BY_HAND(closefrom)      \
  BY_HAND(dup)            \
  BY_HAND(dup2)           \
  BY_HAND(dup3)           \
  BY_HAND(fcntl)          \
  BY_HAND(ioctl)          \
  BY_HAND(sendmsg)        \
  BY_HAND(sendmmsg)       \
  BY_HAND(recvmsg)        \
  BY_HAND(recvmmsg)       \
  BY_HAND(pidfd_getfd)    \
  BY_HAND(mmap)           \
  BY_HAND(sync)           \
  BY_HAND(unlinkat)       \
  BY_HAND(opendir)        \
  BY_HAND(closedir)       \
  BY_HAND(ftw)            \
  BY_HAND(nftw)           \
  BY_HAND(fts_read)       \
  BY_HAND(inotify_init)   \
  BY_HAND(inotify_init1)  \
  BY_HAND(fanotify_init)  \
  BY_HAND(unshare)        \
  BY_HAND(setrlimit)      \
  BY_HAND(prlimit)        \
  BY_HAND(setns)          \
  BY_HAND(fopen)          \
  BY_HAND(freopen)        \
  BY_HAND(fdopen)         \
  BY_HAND(fclose)         \
  BY_HAND(rewind)         \
  BY_HAND(tmpfile)        \
  BY_HAND(vdprintf)       \
  BY_HAND(__vdprintf_chk) \
  BY_HAND(aio_read)       \
  BY_HAND(aio_write)      \
  BY_HAND(aio_fsync)      \
  BY_HAND(lio_listio)     \
  BY_HAND(clone)          \
  BY_HAND(_Fork)          \
  BY_HAND(execve)         \
  BY_HAND(execveat)       \
  BY_HAND(fexecve)        \
  BY_HAND(execvpe)        \
  BY_HAND(posix_spawn)    \
  BY_HAND(posix_spawnp)   \
  BY_HAND(pidfd_spawn)    \
  BY_HAND(pidfd_spawnp)   \
  BY_HAND(popen)          \
  BY_HAND(system)         \
  BY_HAND(_exit)          \
  BY_HAND(syscall)

namespace next {
#define BY_HAND(sym) static constinit decltype(real::sym) sym = nullptr;
#define CALL(sym, ...) BY_HAND(sym)
#define OPENS(sym, ...) BY_HAND(sym)
#define ERRNO(sym, ...) BY_HAND(sym)
#define PAIR(sym, ...) BY_HAND(sym)
#define READS(sym, ...) BY_HAND(sym)
#define WRITES(sym, ...) BY_HAND(sym)
#include "calls.def"
CALLS_BY_HAND
#undef BY_HAND
}  // namespace next

namespace {

template <class Result>
Result refused(int error) {
  errno = error;
  return (Result)(-1L);
}

// A handler ended the wait for a lease of this job. No call on a file that can be leased ends so,
// and nobody is ready for it. Elsewhere it may be the alarm of a program whose server does not
// answer.
bool waits_on(place const& where, bool& was_leased) {
  file f;
  if (!has_leases() || where.kind != place_kind::path || !identify_cached(where, f)) return false;
  bool const is_leased = may_be_leased(f, false);
  // It may have been given back since the last try began.
  bool const waits = is_leased || (was_leased && may_be_leased(f, true));
  was_leased = is_leased;
  return waits;
}

// Who opens or cuts a file meets a lease of this job, and is to try again: the kernel has just
// asked for its end.
bool meets_lease(place const& where, unsigned tries, bool& was_leased) {
  constexpr unsigned most_tries = 400;
  constexpr std::int64_t pause_ns = 500'000;
  if (errno == EINTR) return waits_on(where, was_leased);
  if (errno != EWOULDBLOCK || tries == most_tries) return false;
  // It may have been given back just now.
  if (tries == 0 ? !has_leases() : !may_be_leased()) return false;
  std::uint32_t nobody = 0;
  sys::futex_wait(&nobody, 0, now_ns() + pause_ns, ~0u);
  return true;
}

template <class Call>
auto past_leases(place const& where, Call const& call) {
  bool was_leased = true;  // for all we know
  auto r = call();
  for (unsigned n = 0; is_failure(r) && meets_lease(where, n, was_leased); ++n) r = call();
  return r;
}

}  // namespace

// --- rows that name a place
namespace placed {

namespace {

constexpr bool is_about_all(std::string_view call) { return call == "syncfs"; }

// What others are to see from now on is all that was gathered.
#define CALL(sym, ret, params, args, o, where, size, point)                            \
  ret sym params {                                                                     \
    place const here = where;                                                          \
    constexpr bool syncs = core::op::o == core::op::fsync;                             \
    constexpr bool syncs_all = syncs && is_about_all(#sym);                            \
    if (syncs) syncs_all ? write_all_out_at_last() : write_all_out();                  \
    if (mind(here, core::op::o == core::op::stat)) return slow::sym args;              \
    if (int const error = syncs ? take_error(here.fd) : 0) return refused<ret>(error); \
    return next::sym args;                                                             \
  }
#define ERRNO(sym, ret, params, args, o, where, size, point) \
  ret sym params { return mind(where) ? slow::sym args : next::sym args; }
#define OPENS(sym, ret, params, args, o, where, makes, point)        \
  ret sym params {                                                   \
    place const here = where;                                        \
    mind(here);                                                      \
    std::uint64_t const opening = before_open();                     \
    ret const r = past_leases(here, [&] { return next::sym args; }); \
    note_opened(r, opening);                                         \
    return r;                                                        \
  }
#define PAIR(sym, ret, params, args, o1, where1, size1, o2, where2, size2, point) \
  ret sym params {                                                                \
    bool const one = mind(where1), two = mind(where2);                            \
    return one || two ? slow::sym args : next::sym args;                          \
  }
#define READS(sym, ret, params, args, stream, moved) \
  ret sym params {                                   \
    mind_stream(stream);                             \
    return next::sym args;                           \
  }
#define WRITES(...) READS(__VA_ARGS__)
#include "calls.def"

}  // namespace

}  // namespace placed

// --- the others
namespace body {

namespace {

ssize_t write(int fd, void const* from, size_t size) {
  answer const a = take(fd, from, size);
  if (a == answer::gathered) return static_cast<ssize_t>(size);
  if (a == answer::begin_anew || mind(on_fd(fd))) return slow::write(fd, from, size);
  if (int const error = take_error(fd); error != 0) return refused<ssize_t>(error);
  ssize_t const n = next::write(fd, from, size);
  note_written(fd, from, n);
  return n;
}

// A read that may be answered from memory; `native` makes it.
template <class Native>
ssize_t read_small(int fd, void* to, size_t size, Native const& native) {
  std::size_t n = 0;
  answer const a = take_read(fd, to, size, n);
  if (a == answer::gathered) return static_cast<ssize_t>(n);
  if (a == answer::begin_anew || mind(on_fd(fd))) return slow::read(fd, to, size);
  ssize_t const r = native();
  note_read(fd, r);
  return r;
}

ssize_t read(int fd, void* to, size_t size) {
  return read_small(fd, to, size, [=] { return next::read(fd, to, size); });
}

ssize_t __read_chk(int fd, void* to, size_t size, size_t room) {
  auto const native = [=] { return next::__read_chk(fd, to, size, room); };
  return size > room ? native() : read_small(fd, to, size, native);
}

int truncate(char const* path, off_t size) {
  write_all_out(on_path(path));
  return past_leases(on_path(path), [=] { return next::truncate(path, size); });
}

// What could not be written is told now, or never.
int close(int fd) {
  unsigned const entry = held_entry(fd);  // the table has forgotten it by now
  if (mind(on_fd(fd))) {
    set_fd(fd, entry);
    return slow::close(fd);
  }
  int const error = take_error(fd);
  if (fd >= 0) note_closed(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
  int const r = next::close(fd);
  return r == 0 && error != 0 ? refused<int>(error) : r;
}

int close_range(unsigned first, unsigned last, int flags) {
  let_all_go();
  note_closed(first, last);
  return next::close_range(first, last, flags);
}

void closefrom(int first) {
  let_all_go();
  note_closed(first < 0 ? 0 : static_cast<unsigned>(first), ~0u);
  next::closefrom(first);
}

int copied(int fd, int to) {
  if (to >= 0 && to != fd) note_copied(fd, to);
  return to;
}

int dup(int fd) {
  if (mind(on_fd(fd))) return slow::dup(fd);
  return copied(fd, next::dup(fd));
}

int dup2(int fd, int to) {
  bool const one = mind(on_fd(fd)), two = mind(on_fd(to));
  if (one || two) return slow::dup2(fd, to);
  return copied(fd, next::dup2(fd, to));
}

int dup3(int fd, int to, int flags) {
  bool const one = mind(on_fd(fd)), two = mind(on_fd(to));
  if (one || two) return slow::dup3(fd, to, flags);
  return copied(fd, next::dup3(fd, to, flags));
}

int fcntl(int fd, int command, long arg) {
  bool const only_asks = command == F_GETFL || command == F_GETFD || command == F_SETFD;
  if (command == F_NOTIFY) end_for_good();  // of a directory
  if (command == F_SETLEASE || (!only_asks && has_write_lease(fd))) before_own_lease(fd);
  if (!only_asks && mind(on_fd(fd))) return slow::fcntl(fd, command, arg);
  int const r = next::fcntl(fd, command, arg);
  if (command == F_GETFL && r >= 0 && has_write_lease(fd))
    return r & ~O_ASYNC;  // which the lease has set
  return copies_fd(command) ? copied(fd, r) : r;
}

// Those that name a second file in their argument.
void mind_argument(unsigned long request) {
  constexpr unsigned clones = 0x94, moves_ext4 = 'f', moves_xfs = 'X', loops = 'L';
  switch (_IOC_TYPE(request)) {
    case clones:
    case moves_ext4:
    case moves_xfs:
      return write_all_out();
    case loops:
      return share_all();
    default:
      return;
  }
}

int ioctl(int fd, unsigned long request, long arg) {
  mind_argument(request);
  return mind(on_fd(fd)) ? slow::ioctl(fd, request, arg) : next::ioctl(fd, request, arg);
}

// Descriptors may travel in it; which ones is left to the kernel.
bool may_carry(msghdr const* message) {
  return !can_read(message) || (message->msg_control != nullptr && message->msg_controllen != 0);
}

ssize_t sendmsg(int fd, void const* message, int flags) {
  if (may_carry(static_cast<msghdr const*>(message))) share_all();
  return next::sendmsg(fd, message, flags);
}

int sendmmsg(int fd, void* messages, unsigned count, int flags) {
  share_all();
  return next::sendmmsg(fd, messages, count, flags);
}

// What arrived may have a number of which something is remembered.
ssize_t recvmsg(int fd, void* message, int flags) {
  ssize_t const r = next::recvmsg(fd, message, flags);
  if (r >= 0 && carries_fds(*static_cast<msghdr const*>(message))) share_all();
  return r;
}

int recvmmsg(int fd, void* messages, unsigned count, int flags, void* timeout) {
  int const r = next::recvmmsg(fd, messages, count, flags, timeout);
  for (int i = 0; i < r; ++i)
    if (carries_fds(static_cast<mmsghdr const*>(messages)[i].msg_hdr)) {
      share_all();
      break;
    }
  return r;
}

// A copy of one of our own, perhaps.
int pidfd_getfd(int pidfd, int fd, unsigned flags) {
  int const r = next::pidfd_getfd(pidfd, fd, flags);
  if (r >= 0) share_all();
  return r;
}

// Memory that is the file's sees what others write in it, and not what is gathered.
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t at) {
  bool const is_file = fd >= 0 && (flags & MAP_ANONYMOUS) == 0;
  if (is_file && mind(on_fd(fd))) return slow::mmap(address, size, protection, flags, fd, at);
  if (is_file && may_be_gathered(fd)) end_for_good();
  if (is_file) note_mapped(fd);
  return next::mmap(address, size, protection, flags, fd, at);
}

void sync() {
  write_all_out_at_last();
  next::sync();
}

int unlinkat(int dir, char const* path, int flags) {
  write_all_out();
  return next::unlinkat(dir, path, flags);
}

DIR* opendir(char const* path) {
  write_all_out();
  return next::opendir(path);
}

int closedir(DIR* dir) {
  int const fd = dir != nullptr ? ::dirfd(dir) : -1;
  if (fd >= 0) note_closed(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
  return next::closedir(dir);
}

int ftw(char const* path, ftw_function* visit, int depth) {
  write_all_out();
  return next::ftw(path, visit, depth);
}

int nftw(char const* path, nftw_function* visit, int depth, int flags) {
  write_all_out();
  return next::nftw(path, visit, depth, flags);
}

void* fts_read(void* walk) {
  write_all_out();
  return next::fts_read(walk);
}

// A limit of the size of files is told at the very write, so nothing is held below one.
int setrlimit(int what, void const* limit) {
  let_all_go();
  return next::setrlimit(what, limit);
}

int prlimit(int process, int what, void const* limit, void* old) {
  if (limit != nullptr) let_all_go();
  return next::prlimit(process, what, limit, old);
}

// A process may watch its own files, too. What it does with a watch that it was given is in
// unmetered.cc.
int inotify_init() {
  end_for_good();
  return next::inotify_init();
}

int inotify_init1(int flags) {
  end_for_good();
  return next::inotify_init1(flags);
}

int fanotify_init(unsigned flags, unsigned event_flags) {
  end_for_good();
  return next::fanotify_init(flags, event_flags);
}

int unshare(int what) {
  share_all();
  return next::unshare(what);
}

int setns(int fd, int what) {
  share_all();
  return next::setns(fd, what);
}

// Its number had another file before.
FILE* streamed(FILE* f) {
  if (f != nullptr) note_shared(fd_of(f));
  return f;
}

FILE* fopen(char const* path, char const* mode) {
  write_all_out();
  return streamed(past_leases(on_path(path), [=] { return next::fopen(path, mode); }));
}

// libc gives its number away, whatever comes of it.
void note_stream_ends(FILE* f) {
  mind_stream(f);
  int const fd = f != nullptr ? fd_of(f) : -1;
  if (fd >= 0) note_closed(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
}

FILE* freopen(char const* path, char const* mode, FILE* f) {
  note_stream_ends(f);
  write_all_out();
  return streamed(next::freopen(path, mode, f));
}

int fclose(FILE* f) {
  note_stream_ends(f);
  return next::fclose(f);
}

void rewind(FILE* f) {
  mind_stream(f);
  next::rewind(f);
}

FILE* tmpfile() { return streamed(next::tmpfile()); }

FILE* fdopen(int fd, char const* mode) {
  mind(on_fd(fd));
  note_shared(fd);
  return next::fdopen(fd, mode);
}

int vdprintf(int fd, char const* format, va_list list) {
  mind(on_fd(fd));
  return next::vdprintf(fd, format, list);
}

int __vdprintf_chk(int fd, int flag, char const* format, va_list list) {
  mind(on_fd(fd));
  return next::__vdprintf_chk(fd, flag, format, list);
}

// A thread of libc's uses the descriptor later.
bool mind_request(aiocb const* request) {
  if (!can_read(request)) return false;
  bool const was_held = mind(on_fd(request->aio_fildes));
  note_shared(request->aio_fildes);
  return was_held;
}

int aio_read(aiocb* request) {
  return mind_request(request) ? slow::aio_read(request) : next::aio_read(request);
}

int aio_write(aiocb* request) {
  return mind_request(request) ? slow::aio_write(request) : next::aio_write(request);
}

int aio_fsync(int operation, aiocb* request) {
  return mind_request(request) ? slow::aio_fsync(operation, request)
                               : next::aio_fsync(operation, request);
}

int lio_listio(int mode, aiocb* const* list, int count, void* event) {
  share_all();
  return next::lio_listio(mode, list, count, event);
}

// None comes back to its caller but when it failed, or in the one who called.
template <class Call>
auto starting(Call const& call) {
  before_start();
  auto const r = call();
  after_start();
  return r;
}

// One that has our memory and other descriptors would take its own for ours, and one that has our
// descriptors and other memory sees those that we open later.
bool shares_one(long flags) { return ((flags & CLONE_VM) != 0) != ((flags & CLONE_FILES) != 0); }

int clone(int (*run)(void*), void* stack, int flags, void* argument, void* parent, void* tls,
          void* child) {
  if (shares_one(flags)) stand_back();
  return starting([=] { return next::clone(run, stack, flags, argument, parent, tls, child); });
}

int _Fork() {
  before_start();
  int const r = next::_Fork();
  if (r != 0) after_start();
  return r;
}

int execve(char const* path, char* const* argv, char* const* envp) {
  return starting([=] { return next::execve(path, argv, envp); });
}

int execveat(int dir, char const* path, char* const* argv, char* const* envp, int flags) {
  return starting([=] { return next::execveat(dir, path, argv, envp, flags); });
}

int fexecve(int fd, char* const* argv, char* const* envp) {
  return starting([=] { return next::fexecve(fd, argv, envp); });
}

int execvpe(char const* file, char* const* argv, char* const* envp) {
  return starting([=] { return next::execvpe(file, argv, envp); });
}

int posix_spawn(int* pid, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  return starting([=] { return next::posix_spawn(pid, path, actions, attributes, argv, envp); });
}

int posix_spawnp(int* pid, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  return starting([=] { return next::posix_spawnp(pid, file, actions, attributes, argv, envp); });
}

int pidfd_spawn(int* pidfd, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  return starting([=] { return next::pidfd_spawn(pidfd, path, actions, attributes, argv, envp); });
}

int pidfd_spawnp(int* pidfd, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  return starting([=] { return next::pidfd_spawnp(pidfd, file, actions, attributes, argv, envp); });
}

FILE* popen(char const* command, char const* mode) {
  return starting([=] { return next::popen(command, mode); });
}

int system(char const* command) {
  return starting([=] { return next::system(command); });
}

void _exit(int status) {
  stand_back();
  next::_exit(status);
}

// Those that work on no file, and that runtimes make all the time.
bool is_about_files(long number) {
  switch (number) {
    case SYS_futex:
    case SYS_gettid:
    case SYS_getpid:
    case SYS_tgkill:
    case SYS_getrandom:
    case SYS_getcpu:
    case SYS_membarrier:
    case SYS_sched_yield:
    case SYS_clock_gettime:
    case SYS_rt_sigprocmask:
      return false;
    default:
      return true;
  }
}

// Those after which others may have our descriptors, or use them when nobody looks. True: nothing
// is held until the call is over, in a process that has our memory.
bool mind_sharing(long number, long a, long b, long flags, long fd) {
  switch (number) {
    case SYS_clone:
      if ((a & CLONE_VM) != 0 || shares_one(a)) stand_back();
      [[fallthrough]];
    case SYS_execve:
    case SYS_execveat:
#if defined(SYS_fork)
    case SYS_fork:
#endif
      before_start();
      return true;
    case SYS_clone3:
    case SYS_exit_group:
#if defined(SYS_vfork)
    case SYS_vfork:
#endif
      stand_back();
      break;
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_io_submit:
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
      share_all();
      break;
    case SYS_mmap:
      if ((flags & MAP_ANONYMOUS) != 0) break;
      if (may_be_gathered(static_cast<int>(fd))) end_for_good();
      note_mapped(static_cast<int>(fd));
      break;
    case SYS_close:
      note_closed(static_cast<unsigned>(a), static_cast<unsigned>(a));
      break;
    case SYS_close_range:
      note_closed(static_cast<unsigned>(a), static_cast<unsigned>(b));
      break;
    default:
      break;
  }
  return false;
}

// Others may see each write from now on, or the thread that makes the call has rights of its own:
// what one thread gathers is not another's to write out. Libc's functions are in unmetered.cc.
bool ends_gathering(long number, long b) {
  switch (number) {
    case SYS_io_uring_setup:  // a thread of the kernel may write by itself
    case SYS_inotify_init1:
    case SYS_inotify_add_watch:
    case SYS_fanotify_init:
    case SYS_fanotify_mark:
#if defined(SYS_inotify_init)
    case SYS_inotify_init:
#endif
    case SYS_setuid:
    case SYS_setreuid:
    case SYS_setresuid:
    case SYS_setfsuid:
    case SYS_setgid:
    case SYS_setregid:
    case SYS_setresgid:
    case SYS_setfsgid:
    case SYS_setgroups:
    case SYS_capset:
      return true;
    case SYS_fcntl:
      return b == F_NOTIFY;
    default:
      return false;
  }
}

bool brings_fds(long number) {
  return number == SYS_pidfd_getfd || number == SYS_recvmsg || number == SYS_recvmmsg;
}

// Which file it is about is not looked at.
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (is_about_files(number) && let_all_go()) return slow::syscall(number, a, b, c, d, e, f);
  if (ends_gathering(number, b)) end_for_good();
  bool const is_start = mind_sharing(number, a, b, d, e);
  long const r = next::syscall(number, a, b, c, d, e, f);
  if (r >= 0 && brings_fds(number)) share_all();
  if (is_start && r != 0) after_start();
  return r;
}

}  // namespace

}  // namespace body

namespace {

void stand_before_libc() {
  {
    namespace body = placed;
#define CALL(sym, ...) STAND_BEFORE_REAL(sym)
#define OPENS(sym, ...) STAND_BEFORE_REAL(sym)
#define ERRNO(sym, ...) STAND_BEFORE_REAL(sym)
#define PAIR(sym, ...) STAND_BEFORE_REAL(sym)
#define READS(sym, ...) STAND_BEFORE_REAL(sym)
#define WRITES(sym, ...) STAND_BEFORE_REAL(sym)
#include "calls.def"
  }
  __atomic_store_n(&real::write, &body::write, __ATOMIC_RELEASE);
  __atomic_store_n(&real::read, &body::read, __ATOMIC_RELEASE);
  __atomic_store_n(&real::__read_chk, &body::__read_chk, __ATOMIC_RELEASE);
  __atomic_store_n(&real::truncate, &body::truncate, __ATOMIC_RELEASE);
#define BY_HAND(sym) STAND_BEFORE_REAL(sym)
  CALLS_BY_HAND
#undef BY_HAND
}

void before_quick_exit(void*) { stand_back(); }

bool begin_gathering(char* segment_path) {
  using fork_teller = int(void (*)(), void (*)(), void (*)(), void*);
  using end_teller = int(void (*)(void*), void*);
  auto* const at_fork = reinterpret_cast<fork_teller*>(
      loaded::find({"__register_atfork", loaded::hash_of("__register_atfork"), nullptr}));
  auto* const at_end = reinterpret_cast<end_teller*>(
      loaded::find({"__cxa_at_quick_exit", loaded::hash_of("__cxa_at_quick_exit"), nullptr}));
  return at_fork != nullptr && at_end != nullptr && begin(segment_path) &&
         at_fork(before_start, after_start, nullptr, nullptr) == 0 &&  // libc's own forks, too
         at_end(before_quick_exit, nullptr) == 0;
}

}  // namespace

alignas(extra) constinit extra const hooks = {.beside = abi::gather_beside,
                                              .private_pages = gather_pages,
                                              .begin = begin_gathering,
                                              .stand_before_libc = stand_before_libc,
                                              .leave = stand_back,
                                              .go_blind = stand_back,
                                              .see_again = resume};

}  // namespace sluice::gather

// Of vfork.S: its child has this process's memory, and descriptors of its own.
extern "C" {
__attribute__((visibility("hidden"))) void sluice_before_vfork() { sluice::gather::before_start(); }
__attribute__((visibility("hidden"))) void sluice_after_vfork() { sluice::gather::after_start(); }
}
