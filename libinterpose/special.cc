// SPDX-License-Identifier: Apache-2.0
// Bodies of the SPECIAL rows about descriptors, directories, mappings and asynchronous I/O: calls
// that make or move an fd, or whose work does not show in their arguments.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "apart.h"
#include "loaded.h"
#include "meter.h"
#include "received.h"
#include "rows.h"
#include "sys.h"

namespace sluice {

namespace {

// The next entry read from this directory costs a block.
void start_over(int fd) {
  if (in_table(fd) && may_touch_table()) stage.mine->dents[fd].store(0, std::memory_order_relaxed);
}

// What is outside stays so for good, so that is not said of a number before the kernel was asked: a
// child that shares this memory (clone) may mean another file by it.
void copy_fd(int from, int to) {
  if (to < 0 || !may_touch_table()) return;
  unsigned const entry = peek_fd(from);
  bool const is_outside = (entry & entry_kind_mask) == entry_outside;
  set_fd(to, is_outside ? entry_unknown : entry & ~(entry_inode_asked | entry_inode_known));
}

void reset_fds(int const* fds) {
  if (!may_touch_table()) return;
  set_fd(fds[0], entry_outside);
  set_fd(fds[1], entry_outside);
}

// A call of one op on one place, by hand.
template <class Real>
auto metered(call id, core::op what, place const& where, std::uint64_t bytes, Real&& real_call) {
  visit v{id, what, when::before, false, 0, bytes, 0};
  bool const ours = enter_place(v, where);
  auto const r = real_call();
  if (ours) leave(v, is_failure(r), is_failure(r) ? 0 : bytes);
  return r;
}

// fds that arrived in a message have numbers the table may remember from before.
void forget_received(msghdr const& message) {
  each_of_fds(message, [](int fd) { set_fd(fd, entry_unknown); });
}

// Forgets `fd`, which is about to be closed; what it was.
unsigned forget_fd(int fd) {
  unsigned const entry = stage.mine->entry_of(fd).load(std::memory_order_relaxed);
  set_fd(fd, entry_unknown);
  return entry & ~entry_unverified;
}

}  // namespace

// Charged, never delayed: an application that closes wants to be rid of a resource. The next call
// waits for it.
bool enter_close(visit& v, int fd) {
  if (!may_touch_table() || !in_table(fd)) return false;
  unsigned const entry = forget_fd(fd);
  return (entry & entry_kind_mask) >= entry_first_target && enter_entry(v, entry, fd, false);
}

namespace {

[[gnu::noinline, gnu::cold]] int close_slowly(int fd, unsigned entry) {
  visit v{call::close, core::op::close, when::never, false, 0, 0, 0};
  bool const ours = entry != entry_unknown ? enter_entry(v, entry, fd, false) : enter_close(v, fd);
  int const r = real::close(fd);
  if (ours) leave(v, r != 0, 0);
  return r;
}

}  // namespace

namespace slow {

int close(int fd) {
  beginning b;
  if (is_settled() && in_table(fd)) [[likely]] {
    unsigned const entry = forget_fd(fd);
    b = {entry, begin_planned<false>(call::close, core::op::close, entry, 0)};
  }
  if (b.is(begun::priced)) [[unlikely]]
    b = pay_priced_op(call::close, b.entry(), core::op::close);
  if (b.is(begun::passed)) [[likely]] {
    int const r = real::close(fd);
    if (r != 0) [[unlikely]]
      count_error(call::close);
    return r;
  }
  return b.is(begun::not_ours) ? real::close(fd) : close_slowly(fd, b.entry());
}

int close_range(unsigned first, unsigned last, int flags) {
  return closing_range(first, last, flags, [=] { return real::close_range(first, last, flags); });
}

void closefrom(int first) {
  if (may_touch_table())
    forget_fds(first < 0 ? 0 : static_cast<unsigned>(first), fd_table_size - 1);
  real::closefrom(first);
}

int dup(int fd) {
  int const r = real::dup(fd);
  copy_fd(fd, r);
  return r;
}

int dup2(int fd, int to) {
  int const r = real::dup2(fd, to);
  if (r >= 0 && fd != to) copy_fd(fd, to);
  return r;
}

int dup3(int fd, int to, int flags) {
  int const r = real::dup3(fd, to, flags);
  copy_fd(fd, r);
  return r;
}

int fcntl(int fd, int command, long arg) {
  if (locks_file(command))
    return metered(call::fcntl, core::op::lock, on_fd(fd), 0,
                   [&] { return real::fcntl(fd, command, arg); });
  int const r = real::fcntl(fd, command, arg);
  if (copies_fd(command)) copy_fd(fd, r);
  return r;
}

int pipe(int* fds) {
  int const r = real::pipe(fds);
  if (r == 0) reset_fds(fds);
  return r;
}

int pipe2(int* fds, int flags) {
  int const r = real::pipe2(fds, flags);
  if (r == 0) reset_fds(fds);
  return r;
}

int socketpair(int domain, int type, int protocol, int* fds) {
  int const r = real::socketpair(domain, type, protocol, fds);
  if (r == 0) reset_fds(fds);
  return r;
}

ssize_t recvmsg(int fd, void* message, int flags) {
  ssize_t const r = real::recvmsg(fd, message, flags);
  if (r >= 0 && may_touch_table()) forget_received(*static_cast<msghdr*>(message));
  return r;
}

int recvmmsg(int fd, void* messages, unsigned count, int flags, void* timeout) {
  int const r = real::recvmmsg(fd, messages, count, flags, timeout);
  for (int i = 0; i < r && may_touch_table(); ++i)
    forget_received(static_cast<mmsghdr*>(messages)[i].msg_hdr);
  return r;
}

// Descriptors may leave in it: minded where small writes are gathered (small/).
ssize_t sendmsg(int fd, void const* message, int flags) {
  return real::sendmsg(fd, message, flags);
}

int sendmmsg(int fd, void* messages, unsigned count, int flags) {
  return real::sendmmsg(fd, messages, count, flags);
}

int pidfd_getfd(int pidfd, int fd, unsigned flags) {
  int const r = real::pidfd_getfd(pidfd, fd, flags);
  if (r >= 0 && may_touch_table()) set_fd(r, entry_unknown);
  return r;
}

// Advice brings bytes nobody counts for us.
int posix_fadvise(int fd, off_t at, off_t size, int advice) {
  if (advice != POSIX_FADV_WILLNEED || size < 0) return real::posix_fadvise(fd, at, size, advice);
  auto const wanted = size == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(size);
  return metered(call::posix_fadvise, core::op::read, on_fd(fd), bytes_there(fd, at, wanted),
                 [&] { return real::posix_fadvise(fd, at, size, advice); });
}

ssize_t readahead(int fd, off_t at, std::size_t size) {
  return metered(call::readahead, core::op::read, on_fd(fd), bytes_there(fd, at, size),
                 [&] { return real::readahead(fd, at, size); });
}

int ioctl(int fd, unsigned long request, long arg) {
  constexpr unsigned long clone_file = 0x40049409, clone_range = 0x4020940d,
                          dedupe_range = 0xc0189436;
  if (request != clone_file && request != clone_range && request != dedupe_range)
    return real::ioctl(fd, request, arg);
  return metered(call::ioctl, core::op::write, on_fd(fd), 0,
                 [&] { return real::ioctl(fd, request, arg); });
}

int unlinkat(int dir, char const* path, int flags) {
  core::op const what = (flags & AT_REMOVEDIR) != 0 ? core::op::rmdir : core::op::unlink;
  return metered(call::unlinkat, what, on_at(dir, path), 0,
                 [&] { return real::unlinkat(dir, path, flags); });
}

void sync() {
  visit v{call::sync, core::op::fsync, when::before, false, 0, 0, 0};
  bool const ours = enter_entry(v, entry_first_target, -1, true);
  real::sync();
  if (ours) leave(v, false, 0);
}

int msync(void* address, std::size_t size, int flags) {
  visit v{call::msync, core::op::fsync, when::cancels, false, 0, 0, 0};
  bool const ours = enter_entry(v, mapping_entry(address), -1, true);
  int const r = real::msync(address, size, flags);
  if (ours) leave(v, r != 0, 0);
  return r;
}

void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t at) {
  if ((flags & MAP_FIXED) != 0 && stage.mine != nullptr) {
    forget_mapping(address, size);
    note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  }
  if (fd < 0 || (flags & MAP_ANONYMOUS) != 0)
    return real::mmap(address, size, protection, flags, fd, at);
  visit v{call::mmap, core::op::map, when::before, false, 0, 0, 0};
  bool const ours = enter_place(v, on_fd(fd));
  void* const r = real::mmap(address, size, protection, flags, fd, at);
  if (ours) leave(v, r == MAP_FAILED, 0);
  if (ours && r != MAP_FAILED && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0)
    note_mapping(r, size, v.entry);
  return r;
}

int munmap(void* address, std::size_t size) {
  note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  return real::munmap(address, size);
}

int mprotect(void* address, std::size_t size, int protection) {
  constexpr int whole = PROT_READ | PROT_WRITE;
  if ((protection & PROT_WRITE) == 0) known.has_constants.store(true);
  if ((protection & whole) != whole)
    note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  return real::mprotect(address, size, protection);
}

int pkey_mprotect(void* address, std::size_t size, int protection, int key) {
  known.has_constants.store(true);
  note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  return real::pkey_mprotect(address, size, protection, key);
}

void* mremap(void* address, std::size_t size, std::size_t new_size, int flags, void* to) {
  note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  if ((flags & MREMAP_FIXED) != 0) note_taken_away(reinterpret_cast<std::uintptr_t>(to), new_size);
  return real::mremap(address, size, new_size, flags, to);
}

// Only advice that makes the kernel read is charged; allocators give other advice all the time.
int madvise(void* address, std::size_t size, int advice) {
  if (takes_away(advice)) note_taken_away(reinterpret_cast<std::uintptr_t>(address), size);
  if (advice != MADV_WILLNEED) return real::madvise(address, size, advice);
  unsigned const entry = mapping_entry(address);
  visit v{call::madvise, core::op::map, when::before, false, 0, 0, 0};
  bool const ours = enter_entry(v, entry, -1, true);
  int const r = real::madvise(address, size, advice);
  if (ours) leave(v, r != 0, 0);
  return r;
}

ssize_t process_madvise(int pidfd, iovec const* parts, std::size_t count, int advice,
                        unsigned flags) {
  note_advice(parts, count, advice);
  return real::process_madvise(pidfd, parts, count, advice, flags);
}

// How long the segment is nobody says.
void* shmat(int id, void const* address, int flags) {
  if ((flags & SHM_REMAP) != 0) note_taken_away(0, ~std::uintptr_t{0});
  return real::shmat(id, address, flags);
}

int shmdt(void const* address) {
  note_detached(reinterpret_cast<std::uintptr_t>(address));
  return real::shmdt(address);
}

DIR* opendir(char const* path) {
  visit v{call::opendir, core::op::opendir, when::before, false, 0, 0, 0};
  bool const ours = enter_place(v, on_path(path));
  DIR* const dir = real::opendir(path);
  if (dir != nullptr && may_touch_table()) {
    opened(::dirfd(dir), v);
    start_over(::dirfd(dir));
  }
  if (ours) leave(v, dir == nullptr, 0);
  return dir;
}

DIR* fdopendir(int fd) {
  start_over(fd);
  return metered(call::fdopendir, core::op::stat, on_fd(fd), 0,
                 [&] { return real::fdopendir(fd); });
}

int closedir(DIR* dir) {
  if (!may_touch_table() || dir == nullptr) return real::closedir(dir);
  visit v{call::closedir, core::op::close, when::never, false, 0, 0, 0};
  bool const ours = enter_close(v, ::dirfd(dir));
  int const r = real::closedir(dir);
  if (ours) leave(v, r != 0, 0);
  return r;
}

namespace {

constexpr unsigned dents_block =
    32768 - 280;  // glibc's buffer less one entry: the next one may not fit

// One getdents per block of entries. `next` gives the length of the entry it read, 0 at the end.
template <class Next>
auto read_entry(call id, DIR* dir, Next&& next) {
  int const fd = dir != nullptr && may_touch_table() ? ::dirfd(dir) : -1;
  if (!in_table(fd)) return next().first;
  std::atomic<std::uint16_t>& seen = stage.mine->dents[fd];
  unsigned const before = seen.load(std::memory_order_relaxed);
  visit v{id, core::op::readdir, when::before, false, 0, 0, 0};
  bool const ours = before == 0 && enter_place(v, on_fd(fd));
  auto const [result, length] = next();
  if (ours) leave(v, false, 0);
  if (length == 0 && before != 0) charge(id, core::op::readdir, on_fd(fd), 1);
  unsigned const now = length == 0 ? 0 : before + length;
  seen.store(static_cast<std::uint16_t>(now >= dents_block ? 0 : now), std::memory_order_relaxed);
  return result;
}

struct void_entry {
  void* first;
  unsigned second;
};
struct int_entry {
  int first;
  unsigned second;
};

unsigned length_of_entry(void const* entry) {
  return entry == nullptr ? 0 : static_cast<dirent const*>(entry)->d_reclen;
}

}  // namespace

void* readdir(DIR* dir) {
  return read_entry(call::readdir, dir, [&] {
    void* const entry = real::readdir(dir);
    return void_entry{entry, length_of_entry(entry)};
  });
}

int readdir_r(DIR* dir, void* entry, void** result) {
  return read_entry(call::readdir_r, dir, [&] {
    int const r = real::readdir_r(dir, entry, result);
    return int_entry{r, r == 0 ? length_of_entry(*result) : 0};
  });
}

void rewinddir(DIR* dir) {
  if (dir != nullptr) start_over(::dirfd(dir));
  real::rewinddir(dir);
}

void seekdir(DIR* dir, long at) {
  if (dir != nullptr) start_over(::dirfd(dir));
  real::seekdir(dir, at);
}

namespace {

// Asynchronous I/O is issued by a thread inside libc: it is paid where the program asks for it.
template <class Real>
int submit(call id, bool reads, aiocb const* request, Real&& real_call) {
  if (request == nullptr) return real_call();
  int const fd = request->aio_fildes;
  std::uint64_t const bytes = bytes_of_request(reads, fd, request->aio_offset, request->aio_nbytes);
  return metered(id, reads ? core::op::read : core::op::write, on_fd(fd), bytes, real_call);
}

}  // namespace

int aio_read(aiocb* request) {
  return submit(call::aio_read, true, request, [&] { return real::aio_read(request); });
}

int aio_write(aiocb* request) {
  return submit(call::aio_write, false, request, [&] { return real::aio_write(request); });
}

int aio_fsync(int operation, aiocb* request) {
  if (request == nullptr) return real::aio_fsync(operation, request);
  return metered(call::aio_fsync, core::op::fsync, on_fd(request->aio_fildes), 0,
                 [&] { return real::aio_fsync(operation, request); });
}

int lio_listio(int mode, aiocb* const* list, int count, void* event) {
  for (int i = 0; i < count && can_read(list + i); ++i) {
    aiocb const* const request = list[i];
    if (request == nullptr || request->aio_lio_opcode == LIO_NOP) continue;
    charge_request(call::lio_listio, request->aio_lio_opcode == LIO_READ, request->aio_fildes,
                   request->aio_offset, request->aio_nbytes);
  }
  return real::lio_listio(mode, list, count, event);
}

}  // namespace slow

// It serves the file system itself, as a rule, and must not wait for itself (place.cc) before it
// has read a request. Nobody meters it, so libc's own is looked up each time.
extern "C" __attribute__((visibility("default"))) int sluice_mount(
    char const* source, char const* target, char const* type, unsigned long flags,
    void const* data) __asm__("mount");
int sluice_mount(char const* source, char const* target, char const* type, unsigned long flags,
                 void const* data) {
  void* const found = loaded::find({"mount", loaded::hash_of("mount"), nullptr});
  if (found == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  int const r = reinterpret_cast<decltype(&sluice_mount)>(found)(source, target, type, flags, data);
  bool const is_served = r == 0 && type != nullptr && __builtin_strncmp(type, "fuse", 4) == 0;
  if (is_served && may_touch_table()) stage.mine->serves_files.store(true);
  return r;
}

}  // namespace sluice
