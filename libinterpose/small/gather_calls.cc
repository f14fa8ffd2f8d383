// SPDX-License-Identifier: Apache-2.0
// Calls in a job that has a close-to-open target (gather.h). Each body is reached in the place of
// libc's function. Those of rows that name a place are made from calls.def; the others stand here.
// A call on a held descriptor passed the wrapper unmetered, so it begins anew when it is let go.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "apart.h"
#include "extras.h"
#include "loaded.h"
#include "meter.h"
#include "rows.h"
#include "small/gather.h"
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
  BY_HAND(mmap)           \
  BY_HAND(sync)           \
  BY_HAND(unlinkat)       \
  BY_HAND(opendir)        \
  BY_HAND(ftw)            \
  BY_HAND(nftw)           \
  BY_HAND(fts_read)       \
  BY_HAND(unshare)        \
  BY_HAND(setrlimit)      \
  BY_HAND(prlimit)        \
  BY_HAND(setns)          \
  BY_HAND(fopen)          \
  BY_HAND(freopen)        \
  BY_HAND(fdopen)         \
  BY_HAND(fclose)         \
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

// What stdio does inside libc nobody sees, so its descriptors are never held. But another one of
// the same file may be.
void mind_stream(FILE* f) {
  if (f == nullptr)
    write_all_out();
  else if (int const fd = fd_of(f); fd >= 0)
    mind(on_fd(fd));
}

}  // namespace

// --- rows that name a place
namespace placed {

namespace {

// What others are to see from now on is all that was gathered.
#define CALL(sym, ret, params, args, o, where, size, point)                            \
  ret sym params {                                                                     \
    place const here = where;                                                          \
    constexpr bool syncs = core::op::o == core::op::fsync;                             \
    if (syncs) write_all_out();                                                        \
    if (mind(here)) return slow::sym args;                                             \
    if (int const error = syncs ? take_error(here.fd) : 0) return refused<ret>(error); \
    return next::sym args;                                                             \
  }
#define ERRNO(sym, ret, params, args, o, where, size, point) \
  ret sym params { return mind(where) ? slow::sym args : next::sym args; }
#define OPENS(sym, ret, params, args, o, where, makes, point) \
  ret sym params {                                            \
    mind(where);                                              \
    std::uint32_t const before = before_open();               \
    ret const r = next::sym args;                             \
    note_opened(r, before);                                   \
    return r;                                                 \
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
  if (a == answer::gathered) loaded::end_if_cancelled();
  if (a == answer::gathered) return static_cast<ssize_t>(size);
  if (a == answer::begin_anew || mind(on_fd(fd))) return slow::write(fd, from, size);
  if (int const error = take_error(fd); error != 0) return refused<ssize_t>(error);
  ssize_t const n = next::write(fd, from, size);
  note_written(fd, from, n);
  return n;
}

// What could not be written is told now, or never.
int close(int fd) {
  if (mind(on_fd(fd))) return slow::close(fd);
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
  if (!only_asks && mind(on_fd(fd))) return slow::fcntl(fd, command, arg);
  int const r = next::fcntl(fd, command, arg);
  return copies_fd(command) ? copied(fd, r) : r;
}

int ioctl(int fd, unsigned long request, long arg) {
  return mind(on_fd(fd)) ? slow::ioctl(fd, request, arg) : next::ioctl(fd, request, arg);
}

// Descriptors may travel in it; which ones is left to the kernel.
bool may_carry(msghdr const* message) {
  return !can_read(message) || (message->msg_control != nullptr && message->msg_controllen != 0);
}

ssize_t sendmsg(int fd, void const* message, int flags) {
  if (may_carry(static_cast<msghdr const*>(message))) before_start();
  return next::sendmsg(fd, message, flags);
}

int sendmmsg(int fd, void* messages, unsigned count, int flags) {
  before_start();
  return next::sendmmsg(fd, messages, count, flags);
}

// Memory that is the file's sees what others write in it, and not what is gathered.
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t at) {
  bool const is_file = fd >= 0 && (flags & MAP_ANONYMOUS) == 0;
  if (is_file && mind(on_fd(fd))) return slow::mmap(address, size, protection, flags, fd, at);
  if (is_file && may_be_gathered(fd)) stand_back();
  return next::mmap(address, size, protection, flags, fd, at);
}

void sync() {
  write_all_out();
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

int unshare(int what) {
  before_start();
  return next::unshare(what);
}

int setns(int fd, int what) {
  before_start();
  return next::setns(fd, what);
}

// Its number had another file before.
FILE* streamed(FILE* f) {
  if (f != nullptr) note_shared(fd_of(f));
  return f;
}

FILE* fopen(char const* path, char const* mode) {
  write_all_out();
  return streamed(next::fopen(path, mode));
}

FILE* freopen(char const* path, char const* mode, FILE* f) {
  write_all_out();
  return streamed(next::freopen(path, mode, f));
}

int fclose(FILE* f) {
  mind_stream(f);
  if (f != nullptr) note_shared(fd_of(f));
  return next::fclose(f);
}

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
  before_start();
  return next::lio_listio(mode, list, count, event);
}

// One that has our memory and other descriptors would take its own for ours.
void before_clone(long flags) {
  before_start();
  if ((flags & CLONE_VM) != 0 && (flags & CLONE_FILES) == 0) stand_back();
}

int clone(int (*run)(void*), void* stack, int flags, void* argument, void* parent, void* tls,
          void* child) {
  before_clone(flags);
  return next::clone(run, stack, flags, argument, parent, tls, child);
}

int _Fork() {
  before_start();
  return next::_Fork();
}

int execve(char const* path, char* const* argv, char* const* envp) {
  before_start();
  return next::execve(path, argv, envp);
}

int execveat(int dir, char const* path, char* const* argv, char* const* envp, int flags) {
  before_start();
  return next::execveat(dir, path, argv, envp, flags);
}

int fexecve(int fd, char* const* argv, char* const* envp) {
  before_start();
  return next::fexecve(fd, argv, envp);
}

int execvpe(char const* file, char* const* argv, char* const* envp) {
  before_start();
  return next::execvpe(file, argv, envp);
}

int posix_spawn(int* pid, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  before_start();
  return next::posix_spawn(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(int* pid, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  before_start();
  return next::posix_spawnp(pid, file, actions, attributes, argv, envp);
}

int pidfd_spawn(int* pidfd, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  before_start();
  return next::pidfd_spawn(pidfd, path, actions, attributes, argv, envp);
}

int pidfd_spawnp(int* pidfd, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  before_start();
  return next::pidfd_spawnp(pidfd, file, actions, attributes, argv, envp);
}

FILE* popen(char const* command, char const* mode) {
  before_start();
  return next::popen(command, mode);
}

int system(char const* command) {
  before_start();
  return next::system(command);
}

void _exit(int status) {
  let_all_go();
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

// Those after which others may have our descriptors, or use them when nobody looks.
void mind_sharing(long number, long a) {
  switch (number) {
    case SYS_clone:
      return before_clone(a);
    case SYS_clone3:
      return stand_back();
#if defined(SYS_fork)
    case SYS_fork:
    case SYS_vfork:
#endif
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_io_submit:
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
      return before_start();
    case SYS_close:
      return note_closed(static_cast<unsigned>(a), static_cast<unsigned>(a));
    default:
      return;
  }
}

// Which file it is about is not looked at.
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (is_about_files(number) && let_all_go()) return slow::syscall(number, a, b, c, d, e, f);
  mind_sharing(number, a);
  return next::syscall(number, a, b, c, d, e, f);
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
#define BY_HAND(sym) STAND_BEFORE_REAL(sym)
  CALLS_BY_HAND
#undef BY_HAND
}

// fork() calls it, also where libc itself forks.
void before_fork() { before_start(); }
void before_quick_exit(void*) { stand_back(); }

bool begin_gathering(char*) {
  using fork_teller = int(void (*)(), void (*)(), void (*)(), void*);
  using end_teller = int(void (*)(void*), void*);
  auto* const at_fork = reinterpret_cast<fork_teller*>(
      loaded::find({"__register_atfork", loaded::hash_of("__register_atfork"), nullptr}));
  auto* const at_end = reinterpret_cast<end_teller*>(
      loaded::find({"__cxa_at_quick_exit", loaded::hash_of("__cxa_at_quick_exit"), nullptr}));
  return at_fork != nullptr && at_end != nullptr && begin() &&
         at_fork(before_fork, nullptr, nullptr, nullptr) == 0 &&
         at_end(before_quick_exit, nullptr) == 0;
}

}  // namespace

constinit extra const hooks = {.beside = abi::gather_beside,
                               .private_pages = gather_pages,
                               .begin = begin_gathering,
                               .stand_before_libc = stand_before_libc,
                               .leave = stand_back,
                               .go_blind = stand_back,
                               .see_again = resume};

}  // namespace sluice::gather

// Of vfork.S: its child has this process's memory, and descriptors of its own.
extern "C" __attribute__((visibility("hidden"))) void sluice_before_vfork() {
  sluice::gather::before_start();
}
