// SPDX-License-Identifier: Apache-2.0
// Calls on durable targets: the real function, and what is noted before and after it. Each body
// is reached in the place of libc's function, from the wrappers and from the bodies of calls.def
// alike, and only in a job that has a durable target.
#include "loaded.h"
#include "order/barriers.h"
#include "order/bodies.h"
#include "order/home.h"
#include "order/moves.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sys.h"

namespace sluice::order {

namespace next {
#define ORDERED(sym) constinit decltype(real::sym) sym = nullptr;
#include "order/order.def"
}  // namespace next

namespace {

// What the call returned, or -1 where the journal has what the kernel has synced and lost.
template <class Result>
Result written(write_view& v, int fd, Result r) {
  after_write(v, fd, static_cast<std::int64_t>(r));
  if (r <= 0 || !v.is_synced) return r;
  int const error = refused_at_home(v.file);
  if (error == 0) return r;
  if (v.at < 0) sys::act(SYS_lseek, fd, -static_cast<long>(r), SEEK_CUR);  // as a failed sync
  return refused<Result>(error);
}

// A write at `at`, or at the file position when that is negative.
template <class Real>
[[gnu::always_inline]] inline auto writing(int fd, std::int64_t at, int rwf, Real&& real_call) {
  if (has_barriers() && is_durable(fd)) {
    bool const may_wait = (rwf & rwf_nowait) == 0;
    if (!may_wait && !is_written_by(fd)) return real_call();  // the kernel says what is wrong
    if (int const error = pass_barriers(stream_of(fd), may_wait); error != 0)
      return refused<decltype(real_call())>(error);
  }
  if (is_unwatched()) {
    auto const r = real_call();
    if (was_unwatched()) return r;
    write_view v = unnoted_write(at, rwf);
    return written(v, fd, r);
  }
  write_view v = before_write(fd, at, rwf);
  auto const r = real_call();
  return written(v, fd, r);
}

// A write that a flag of the call makes durable. Nobody but the call knows of the flag, so it is a
// write, and the fsync it stands for. What a descriptor was opened with others may know, and rely
// on: there the flag stays, and the kernel syncs.
template <class Real>
[[gnu::always_inline]] inline ssize_t writing_durably(int fd, std::int64_t at, int rwf,
                                                      Real&& real_call) {
  constexpr int syncs = rwf_dsync | rwf_sync;
  if ((rwf & syncs) == 0 || (rwf & rwf_nowait) != 0 || !may_be_logged(fd))
    return writing(fd, at, rwf, [&] { return static_cast<ssize_t>(real_call(rwf)); });
  int const left = rwf & ~syncs;
  ssize_t const n = writing(fd, at, left, [&] { return static_cast<ssize_t>(real_call(left)); });
  auto const kind =
      (rwf & rwf_sync) != 0 ? abi::order_request::fsync : abi::order_request::fdatasync;
  if (n <= 0 || make_durable(fd, kind) == 0) return n;
  if (at < 0) sys::act(SYS_lseek, fd, -n, SEEK_CUR);  // as the kernel leaves it then
  return -1;
}

// The offset a call was given by pointer, before the call moves it.
std::int64_t offset_at(off_t const* at) {
  return can_read(at) ? static_cast<std::int64_t>(*at) : -1;
}

// A change through a descriptor is noted when it is done, for the file that the descriptor had
// before. When nothing was noted before the call, the file is looked at after it.
template <class Real, class Note>
auto changing(int fd, Real&& real_call, Note&& note) {
  file_now f;
  bool const was_noting = !is_unwatched();
  bool ours = was_noting && look_at_ours(fd, f);
  auto const r = real_call();
  if (r != 0) return r;
  if (!was_noting && !was_unwatched()) ours = look_at_ours(fd, f);
  if (ours) note(f);
  return r;
}

template <class Real>
auto cutting(int fd, off_t size, Real&& real_call) {
  if (int const error = closed_for(fd); error != 0) return refused<decltype(real_call())>(error);
  return changing(fd, real_call,
                  [&](file_now const& f) { note_cut(f, static_cast<std::uint64_t>(size)); });
}

// By name: whoever has it before or after was cut.
template <class Real>
auto cutting_by_name(char const* path, off_t size, Real&& real_call) {
  file_now f[2];
  bool seen[2];
  if (int const error = closed_for_names(); error != 0)
    return refused<decltype(real_call())>(error);
  bool const ours = sees() && can_read_text(path);
  seen[0] = ours && !is_unwatched() && see(sys::at_cwd, path, 0, f[0]);
  auto const r = real_call();
  seen[1] = ours && r == 0 && !was_unwatched() && see(sys::at_cwd, path, 0, f[1]);
  for (int i = 0; r == 0 && i < 2; ++i)
    if (seen[i] && S_ISREG(f[i].mode)) note_cut(f[i], static_cast<std::uint64_t>(size));
  return r;
}

template <class Real>
auto allocating(int fd, int mode, off_t at, off_t size, Real&& real_call) {
  if (int const error = closed_for(fd); error != 0) return refused<decltype(real_call())>(error);
  bypass_if_synced(fd);
  if ((mode & ~FALLOC_FL_KEEP_SIZE) == 0) return real_call();
  return changing(fd, real_call, [&](file_now const& f) {
    if ((mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0)
      note_cut(f, static_cast<std::uint64_t>(at));
    if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
      note_bytes(f, static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(at + size));
    else
      note_whole(f);
  });
}

// Stores into the mapping are seen by nobody. A mapping that is read-only today may be made
// writable later when its fd allows it.
template <class Real>
auto mapping_file(int protection, int flags, int fd, Real&& real_call) {
  constexpr int map_type = 15;  // MAP_SHARED 1, MAP_SHARED_VALIDATE 3
  file_now f;
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && (flags & map_type & MAP_SHARED) != 0 &&
      look_at_ours(fd, f)) {
    long const mode = sys::call(SYS_fcntl, fd, F_GETFL);
    bool const may_write = (protection & PROT_WRITE) != 0 || (mode & O_ACCMODE) == O_RDWR;
    if (may_write) wait_for_barriers();
    if (may_write) bypass(fd, f);
  }
  return real_call();
}

template <class Real>
auto opening_file(int dir, char const* path, int flags, Real&& real_call) {
  if (!may_change(flags)) return real_call();
  if (int const error = closed_for_names(); error != 0)
    return refused<decltype(real_call())>(error);
  opening const o = before_open(dir, path, flags);
  auto const r = real_call();
  after_open(o, static_cast<int>(r));
  return r;
}

template <class Real>
long setting_up_ring(Real&& real_call) {
  go_blind();
  long const r = real_call();
  if (r < 0) see_again();
  return r;
}

// Written by another thread, or by the kernel, when the call has long returned; or not for the
// daemon to have open.
void bypass_fd(int fd) {
  file_now f;
  wait_for_barriers();
  if (look_at_ours(fd, f)) bypass(fd, f);
}

// Who calls: at these functions of libc a cancelled thread ends, in syscall(2) it goes on.
enum class by : bool { libc, number };

void end_if_cancelled(by whom) {
  if (whom == by::libc) loaded::end_if_cancelled();
}

template <class Real>
auto syncing(int fd, abi::order_request kind, by whom, Real&& real_call) {
  using result = decltype(real_call());
  bool const is_barrier = is_ordered(fd);
  if (!is_barrier && !is_durable(fd) && !is_logged(fd)) return real_call();
  end_if_cancelled(whom);
  barrier ignored;
  return result{is_barrier ? make_ordered(fd, kind, ignored) : make_durable(fd, kind)};
}

// It promises no more than that pages have left for the disk. On one without a cache that is enough
// for them to be there after a power cut, where recovery would put what the journal has in their
// place.
template <class Real>
auto syncing_range(int fd, unsigned flags, by whom, Real&& real_call) {
  using result = decltype(real_call());
  constexpr unsigned waits = 1 | 4;  // SYNC_FILE_RANGE_WAIT_BEFORE, _AFTER
  if ((flags & waits) != 0 && is_logged(fd)) {
    end_if_cancelled(whom);
    count(abi::order_count::ranges);
    if (make_durable(fd, abi::order_request::fdatasync) != 0) return result{-1};
  }
  return real_call();
}

// The file is native since it was mapped, so its stores wait for no barrier. Making them durable on
// purpose must wait, for it would overtake what an open barrier holds back.
template <class Real>
auto syncing_mapping(void* address, int flags, Real&& real_call) {
  using result = decltype(real_call());
  if ((flags & MS_SYNC) == 0) return real_call();
  if (int const error = closed_for_names(); error != 0) return refused<result>(error);
  unsigned const target = (mapping_entry(address) & entry_kind_mask) - entry_first_target;
  bool const is_ours = target < core::max_targets && (durable.targets >> target & 1) != 0;
  if (is_ours) count(abi::order_count::mapped);
  auto const r = real_call();
  // Whether the journal has something of that file is not known.
  std::uint32_t const lost = is_ours ? durable.area->head.refused.load() : 0;
  return r == 0 && lost != 0 ? refused<result>(static_cast<int>(lost)) : r;
}

// The kernel gives a lease for writing to one who alone has the file open.
void before_fcntl(int fd, int command, long arg) {
  if (command == F_SETLEASE && arg == F_WRLCK) bypass_fd(fd);
}

}  // namespace

namespace body {

int fsync(int fd) {
  return syncing(fd, abi::order_request::fsync, by::libc, [=] { return next::fsync(fd); });
}

int fdatasync(int fd) {
  return syncing(fd, abi::order_request::fdatasync, by::libc, [=] { return next::fdatasync(fd); });
}

int syncfs(int fd) {
  bool const is_void = before_sync();
  int const r = next::syncfs(fd);
  after_sync(is_void, false);
  return r;
}

int sync_file_range(int fd, off_t at, off_t size, unsigned flags) {
  return syncing_range(fd, flags, by::libc,
                       [=] { return next::sync_file_range(fd, at, size, flags); });
}

int msync(void* address, std::size_t size, int flags) {
  return syncing_mapping(address, flags, [=] { return next::msync(address, size, flags); });
}

void sync() {
  bool const is_void = before_sync();
  next::sync();
  after_sync(is_void, true);
}

ssize_t write(int fd, void const* from, std::size_t size) {
  return writing(fd, -1, 0, [&] { return next::write(fd, from, size); });
}

ssize_t pwrite(int fd, void const* from, std::size_t size, off_t at) {
  return writing(fd, at, 0, [&] { return next::pwrite(fd, from, size, at); });
}

ssize_t writev(int fd, iovec const* parts, int count) {
  return writing(fd, -1, 0, [&] { return next::writev(fd, parts, count); });
}

ssize_t pwritev(int fd, iovec const* parts, int count, off_t at) {
  return writing(fd, at, 0, [&] { return next::pwritev(fd, parts, count, at); });
}

ssize_t pwritev2(int fd, iovec const* parts, int count, off_t at, int flags) {
  return writing_durably(fd, at, flags,
                         [&](int left) { return next::pwritev2(fd, parts, count, at, left); });
}

ssize_t copy_file_range(int in, off_t* in_at, int out, off_t* out_at, std::size_t size,
                        unsigned flags) {
  return writing(out, offset_at(out_at), 0,
                 [&] { return next::copy_file_range(in, in_at, out, out_at, size, flags); });
}

ssize_t sendfile(int out, int in, off_t* at, std::size_t size) {
  return writing(out, -1, 0, [&] { return next::sendfile(out, in, at, size); });
}

ssize_t splice(int in, off_t* in_at, int out, off_t* out_at, std::size_t size, unsigned flags) {
  return writing(out, offset_at(out_at), 0,
                 [&] { return next::splice(in, in_at, out, out_at, size, flags); });
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  return allocating(fd, mode, at, size, [&] { return next::fallocate(fd, mode, at, size); });
}

int rename(char const* from, char const* to) {
  return moving({sys::at_cwd, from}, {sys::at_cwd, to}, [&] { return next::rename(from, to); });
}

int renameat(int from_dir, char const* from, int to_dir, char const* to) {
  return moving({from_dir, from}, {to_dir, to},
                [&] { return next::renameat(from_dir, from, to_dir, to); });
}

int renameat2(int from_dir, char const* from, int to_dir, char const* to, unsigned flags) {
  return moving_or_swapping({from_dir, from}, {to_dir, to}, flags,
                            [&] { return next::renameat2(from_dir, from, to_dir, to, flags); });
}

int link(char const* from, char const* to) {
  return moving({sys::at_cwd, from}, {sys::at_cwd, to}, [&] { return next::link(from, to); });
}

int linkat(int from_dir, char const* from, int to_dir, char const* to, int flags) {
  return moving({from_dir, from}, {to_dir, to},
                [&] { return next::linkat(from_dir, from, to_dir, to, flags); });
}

int truncate(char const* path, off_t size) {
  return cutting_by_name(path, size, [&] { return next::truncate(path, size); });
}

int ftruncate(int fd, off_t size) {
  return cutting(fd, size, [&] { return next::ftruncate(fd, size); });
}

// Cloned ranges: the wrapper lets only these requests through to here with a cost.
int ioctl(int fd, unsigned long request, long arg) {
  constexpr unsigned long clone_file = 0x40049409, clone_range = 0x4020940d;
  bool const clones = request == clone_file || request == clone_range;
  if (int const error = clones ? closed_for(fd) : 0; error != 0) return refused<int>(error);
  if (clones) bypass_if_synced(fd);
  int const r = next::ioctl(fd, request, arg);
  file_now f;
  if (r == 0 && clones && look_at_ours(fd, f)) note_whole(f);
  return r;
}

int fcntl(int fd, int command, long arg) {
  before_fcntl(fd, command, arg);
  return next::fcntl(fd, command, arg);
}

void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t at) {
  return mapping_file(protection, flags, fd,
                      [&] { return next::mmap(address, size, protection, flags, fd, at); });
}

int open(char const* path, int flags, unsigned mode) {
  return opening_file(sys::at_cwd, path, flags, [&] { return next::open(path, flags, mode); });
}

int __open_2(char const* path, int flags) {
  return opening_file(sys::at_cwd, path, flags, [&] { return next::__open_2(path, flags); });
}

int openat(int dir, char const* path, int flags, unsigned mode) {
  return opening_file(dir, path, flags, [&] { return next::openat(dir, path, flags, mode); });
}

int __openat_2(int dir, char const* path, int flags) {
  return opening_file(dir, path, flags, [&] { return next::__openat_2(dir, path, flags); });
}

// Its flags lie in the first word of `how`.
int flags_of(void const* how, std::size_t size) {
  auto const* const first = static_cast<std::uint64_t const*>(how);
  return size >= sizeof *first && can_read(first) ? static_cast<int>(*first) : 0;
}

int openat2(int dir, char const* path, void* how, std::size_t size) {
  return opening_file(dir, path, flags_of(how, size),
                      [&] { return next::openat2(dir, path, how, size); });
}

int creat(char const* path, unsigned mode) {
  return opening_file(sys::at_cwd, path, O_CREAT | O_TRUNC,
                      [&] { return next::creat(path, mode); });
}

int open_by_handle_at(int mount, void* handle, int flags) {
  return opening_file(sys::at_cwd, nullptr, flags,
                      [&] { return next::open_by_handle_at(mount, handle, flags); });
}

constexpr int makes_new = O_CREAT | O_EXCL;

int mkstemp(char* path) {
  return opening_file(sys::at_cwd, path, makes_new, [&] { return next::mkstemp(path); });
}

int mkostemp(char* path, int flags) {
  return opening_file(sys::at_cwd, path, makes_new, [&] { return next::mkostemp(path, flags); });
}

int mkstemps(char* path, int suffix) {
  return opening_file(sys::at_cwd, path, makes_new, [&] { return next::mkstemps(path, suffix); });
}

int mkostemps(char* path, int suffix, int flags) {
  return opening_file(sys::at_cwd, path, makes_new,
                      [&] { return next::mkostemps(path, suffix, flags); });
}

int aio_write(aiocb* request) {
  if (request != nullptr) bypass_fd(request->aio_fildes);
  return next::aio_write(request);
}

int aio_fsync(int operation, aiocb* request) {
  if (request != nullptr) bypass_fd(request->aio_fildes);
  return next::aio_fsync(operation, request);
}

int lio_listio(int mode, aiocb* const* list, int count, void* event) {
  for (int i = 0; i < count && can_read(list + i); ++i)
    if (list[i] != nullptr && list[i]->aio_lio_opcode == LIO_WRITE) bypass_fd(list[i]->aio_fildes);
  return next::lio_listio(mode, list, count, event);
}

int vdprintf(int fd, char const* format, va_list list) {
  return writing(fd, -1, 0, [&] { return next::vdprintf(fd, format, list); });
}

int __vdprintf_chk(int fd, int flag, char const* format, va_list list) {
  return writing(fd, -1, 0, [&] { return next::__vdprintf_chk(fd, flag, format, list); });
}

off_t const* offset_of(long a) { return reinterpret_cast<off_t const*>(a); }

void bypass_submitted(iocb* const* list, long count) {
  for (long i = 0; i < count && can_read(list + i) && can_read(list[i]); ++i)
    if (list[i]->aio_lio_opcode != IOCB_CMD_PREAD && list[i]->aio_lio_opcode != IOCB_CMD_PREADV)
      bypass_fd(static_cast<int>(list[i]->aio_fildes));
}

// The system calls that write or rename, through syscall(2).
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  auto const raw = [=] { return next::syscall(number, a, b, c, d, e, f); };
  auto const fd = static_cast<int>(a);
  switch (number) {
    case SYS_write:
    case SYS_writev:
      return writing(fd, -1, 0, raw);
    case SYS_pwrite64:
    case SYS_pwritev:
      return writing(fd, d, 0, raw);
    case SYS_pwritev2:
      return writing_durably(fd, d, static_cast<int>(f),
                             [=](int left) { return next::syscall(number, a, b, c, d, e, left); });
    case SYS_copy_file_range:
    case SYS_splice:
      return writing(static_cast<int>(c), offset_at(offset_of(d)), 0, raw);
    case SYS_sendfile:
      return writing(fd, -1, 0, raw);
    case SYS_fsync:
      return syncing(fd, abi::order_request::fsync, by::number, raw);
    case SYS_fdatasync:
      return syncing(fd, abi::order_request::fdatasync, by::number, raw);
    case SYS_sync:
      return sync(), 0;
    case SYS_syncfs:
      return syncfs(fd);
    case SYS_sync_file_range:
      return syncing_range(fd, static_cast<unsigned>(d), by::number, raw);
    case SYS_msync:
      return syncing_mapping(reinterpret_cast<void*>(a), static_cast<int>(c), raw);
    case SYS_fcntl:
      before_fcntl(fd, static_cast<int>(b), c);
      return raw();
    case SYS_fallocate:
      return allocating(fd, static_cast<int>(b), c, d, raw);
    case SYS_ftruncate:
      return cutting(fd, b, raw);
    case SYS_truncate:
      return cutting_by_name(path_at(a), b, raw);
    case SYS_mmap:
      return mapping_file(static_cast<int>(c), static_cast<int>(d), static_cast<int>(e), raw);
    case SYS_openat:
      return opening_file(fd, path_at(b), static_cast<int>(c), raw);
    case SYS_openat2:
      return opening_file(fd, path_at(b), flags_of(path_at(c), static_cast<std::size_t>(d)), raw);
#if defined(SYS_open)
    case SYS_open:
      return opening_file(sys::at_cwd, path_at(a), static_cast<int>(b), raw);
    case SYS_creat:
      return opening_file(sys::at_cwd, path_at(a), O_CREAT | O_TRUNC, raw);
#endif
    case SYS_close:
    case SYS_close_range:
      before_close(static_cast<unsigned>(a), static_cast<unsigned>(number == SYS_close ? a : b));
      return raw();
    case SYS_exit_group:
      wait_for_barriers();
      return raw();
    case SYS_io_submit:
      bypass_submitted(reinterpret_cast<iocb* const*>(c), b);
      return raw();
    case SYS_io_uring_setup:
      return setting_up_ring(raw);
    default:
      return changing_names(number, a, b, c, d, e, raw);
  }
}

}  // namespace body

void stand_between() {
#define ORDERED(sym) STAND_BEFORE_REAL(sym)
#include "order/order.def"
  stand_between_streams();
  stand_between_names();
}

}  // namespace sluice::order
