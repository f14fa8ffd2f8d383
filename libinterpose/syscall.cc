// SPDX-License-Identifier: Apache-2.0
// syscall(2): some runtimes make their file I/O this way (Node: statx, copy_file_range). The
// numbers in syscalls.def are metered like the functions they stand for; those that change
// descriptors, start programs, name threads or enter a sandbox are followed; everything else goes
// through as it came.
#include <linux/aio_abi.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "apart.h"
#include "attach.h"
#include "meter.h"
#include "rows.h"

namespace sluice {

namespace {

using sys::path_at;
iovec const* parts_at(long a) { return reinterpret_cast<iovec const*>(a); }
char* const* list_at(long a) { return reinterpret_cast<char* const*>(a); }

struct raw_call {
  long number, a, b, c, d, e, f;
  long operator()() const { return real::syscall(number, a, b, c, d, e, f); }
};

// Linux AIO: paid at submission, like POSIX AIO. What cannot be read is left to the kernel to
// refuse.
void charge_submission(iocb* const* list, long count) {
  for (long i = 0; i < count && can_read(list + i); ++i) {
    iocb const* const request = list[i];
    if (!can_read(request)) return;
    bool const reads =
        request->aio_lio_opcode == IOCB_CMD_PREAD || request->aio_lio_opcode == IOCB_CMD_PREADV;
    bool const writes =
        request->aio_lio_opcode == IOCB_CMD_PWRITE || request->aio_lio_opcode == IOCB_CMD_PWRITEV;
    if (!reads && !writes) continue;
    bool const vectored =
        request->aio_lio_opcode == IOCB_CMD_PREADV || request->aio_lio_opcode == IOCB_CMD_PWRITEV;
    auto const bytes = vectored ? bytes_of(parts_at(static_cast<long>(request->aio_buf)),
                                           static_cast<int>(request->aio_nbytes))
                                : static_cast<std::size_t>(request->aio_nbytes);
    charge_request(reads ? call::aio_read : call::aio_write, reads,
                   static_cast<int>(request->aio_fildes), request->aio_offset, bytes);
  }
}

// Numbers that change what of the program's memory is there.
void note_memory(raw_call const& raw) {
  auto const [number, a, b, c, d, e, f] = raw;
  bool const is_map = number == SYS_mmap && (d & MAP_FIXED) != 0;
  bool const is_move = number == SYS_mremap;
  if (is_map || is_move || number == SYS_munmap || number == SYS_mprotect ||
      number == SYS_pkey_mprotect)
    note_taken_away(static_cast<std::uintptr_t>(a), static_cast<std::size_t>(b));
  if (number == SYS_mprotect || number == SYS_pkey_mprotect) known.has_constants.store(true);
  if (is_move) note_taken_away(static_cast<std::uintptr_t>(e), static_cast<std::size_t>(c));
  if (number == SYS_madvise && takes_away(static_cast<int>(c)))
    note_taken_away(static_cast<std::uintptr_t>(a), static_cast<std::size_t>(b));
  if (number == SYS_process_madvise)
    note_advice(parts_at(b), static_cast<std::size_t>(c), static_cast<int>(d));
  if (number == SYS_shmat && (c & SHM_REMAP) != 0) note_taken_away(0, ~std::uintptr_t{0});
  if (number == SYS_shmdt) note_detached(static_cast<std::uintptr_t>(a));
  if (number == SYS_brk) note_break(static_cast<std::uintptr_t>(a));
}

long enter_by_seccomp(raw_call const& raw) {
  bool const is_strict = raw.a == 0, is_filter = raw.a == 1;
  if (!is_strict && !is_filter) return raw();
  long const mode = is_strict ? SECCOMP_MODE_STRICT : SECCOMP_MODE_FILTER;
  // The number of a thread that cannot follow is a refusal, that of a listener is none.
  constexpr long for_all = SECCOMP_FILTER_FLAG_TSYNC, listener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  bool const may_name_a_thread = is_filter && (raw.b & for_all) != 0 && (raw.b & listener) == 0;
  return into_sandbox(mode, raw.c, raw, may_name_a_thread ? 0 : __LONG_MAX__);
}

// Nothing is metered here, but a further sandbox may be entered, or a program started in one.
long without_job(raw_call const& raw) {
  switch (raw.number) {
    case SYS_seccomp:
      return enter_by_seccomp(raw);
    case SYS_prctl:
      return slow::prctl(int(raw.a), raw.b, raw.c, raw.d, raw.e);
    case SYS_execve:
      if (!minds_starts()) return raw();
      return slow::execve(path_at(raw.a), list_at(raw.b), list_at(raw.c));
    case SYS_execveat:
      if (!minds_starts()) return raw();
      return slow::execveat(int(raw.a), path_at(raw.b), list_at(raw.c), list_at(raw.d), int(raw.e));
    default:
      return raw();
  }
}

// libc's own ends a thread that waits for a lock and is cancelled, and asks another way for an
// owner.
long fcntl_by(raw_call const& raw, int fd, int command, long arg) {
  if (copies_fd(command)) return slow::fcntl(fd, command, arg);
  if (!locks_file(command)) return raw();
  return call_slowly({call::fcntl, core::op::lock, when::before, false, 0, 0, 0}, on_fd(fd),
                     entry_unknown, raw);
}

// Numbers that make, move or drop descriptors, submit rings, start programs, name threads, or enter
// a sandbox.
long followed(raw_call const& raw) {
  auto const [number, a, b, c, d, e, f] = raw;
  switch (number) {
    case SYS_close: {
      visit v{call::close, core::op::close, when::never, false, 0, 0, 0};
      bool const ours = enter_close(v, int(a));
      long const r = raw();  // not real::close, which is a cancellation point
      if (ours) leave(v, r != 0, 0);
      return r;
    }
    case SYS_unlinkat:
      return slow::unlinkat(int(a), path_at(b), int(c));
    case SYS_dup:
      return slow::dup(int(a));
#if defined(SYS_dup2)
    case SYS_dup2:
      return slow::dup2(int(a), int(b));
#endif
    case SYS_fcntl:
      return fcntl_by(raw, int(a), int(b), c);
    case SYS_pipe2:
      return slow::pipe2(reinterpret_cast<int*>(a), int(b));
    case SYS_socket:
    case SYS_accept4:
    case SYS_eventfd2:
    case SYS_epoll_create1:
    case SYS_memfd_create:
    case SYS_io_uring_setup:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd: {
      long const fd = raw();
      if (fd >= 0 && !self.is_vfork_child) set_fd(static_cast<int>(fd), entry_unknown);
      return fd;
    }
    case SYS_dup3:
      return slow::dup3(int(a), int(b), int(c));
    case SYS_chdir:
      return slow::chdir(path_at(a));
    case SYS_fchdir:
      return slow::fchdir(int(a));
    case SYS_chroot:
      return slow::chroot(path_at(a));
    case SYS_unshare:
      return slow::unshare(int(a));
    case SYS_setns:
      return slow::setns(int(a), int(b));
    case SYS_close_range:
      return closing_range(unsigned(a), unsigned(b), int(c), raw);  // an older libc has no function
    case SYS_io_submit:
      charge_submission(reinterpret_cast<iocb* const*>(c), b);
      return raw();
    case SYS_io_uring_enter:
      pass_through(abi::passthrough::ring);
      return raw();
    case SYS_landlock_restrict_self:
      stage.mine->below_landlock.store(true);
      return raw();
    case SYS_seccomp:
      return enter_by_seccomp(raw);
    case SYS_prctl:
      return slow::prctl(int(a), b, c, d, e);
    case SYS_execve:
      return slow::execve(path_at(a), list_at(b), list_at(c));
    case SYS_execveat:
      return slow::execveat(int(a), path_at(b), list_at(c), list_at(d), int(e));
    default:
      note_memory(raw);
      return raw();
  }
}

}  // namespace

long slow::syscall(long number, long a, long b, long c, long d, long e, long f) {
  raw_call const raw{number, a, b, c, d, e, f};
  if (stage.active.load(std::memory_order_relaxed) == nullptr) return without_job(raw);
  switch (number) {
#define SYSCALL(nr, id, o, where, bytes)                                                \
  case nr: {                                                                            \
    auto const size = static_cast<std::uint64_t>(bytes);                                \
    return call_slowly({call::id, core::op::o, when::before, false, 0, size, 0}, where, \
                       entry_unknown, raw);                                             \
  }
#include "syscalls.def"
    case SYS_openat:
    case SYS_openat2:
      return open_slowly({call::openat, core::op::open, when::before, false, 0, 0, 0},
                         on_at(int(a), path_at(b)), {}, raw);
#if defined(SYS_open)
    case SYS_open:
      return open_slowly({call::open, core::op::open, when::before, false, 0, 0, 0},
                         on_path(path_at(a)), {}, raw);
    case SYS_creat:
      return open_slowly({call::creat, core::op::open, when::before, false, 0, 0, 0},
                         on_path(path_at(a)), {}, raw);
#endif
    default:
      return followed(raw);
  }
}

}  // namespace sluice
