// SPDX-License-Identifier: Apache-2.0
// The only raw system calls of the stage. They are raw because we replace libc's own symbols,
// because those would touch errno and add cancellation points, and because those may not be there
// yet when we are called. All return the kernel's value: negative error number on failure. errno is
// never touched.
#pragma once

#include <linux/futex.h>
#include <linux/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::sys {

/// The program has entered a sandbox that may end it for a call which it does not make itself. A
/// filter may come to all threads at once, also to one that is just about to make such a call.
extern std::atomic<bool> is_forbidden __attribute__((visibility("hidden")));

/// In the program's place: what it asked for itself, whatever it has entered.
#if defined(__x86_64__)
inline long act(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                long f = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long act(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                long f = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
#else
#error "add the system call instruction of this machine here"
#endif

/// A call of our own: none where it is forbidden (-ENOSYS). Not inline: what a child of fork needs
/// lies on few pages.
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0)
    __attribute__((visibility("hidden")));

inline long as_long(void const* p) { return reinterpret_cast<long>(p); }
inline char const* path_at(long a) { return reinterpret_cast<char const*>(a); }

inline bool failed(long result) { return result < 0 && result > -4096; }

inline long map(std::size_t bytes, int protection, int flags, int fd) {
  return call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
}

/// What a file is, without asking a server for its size: type, device, inode, mount.
struct file_identity {
  std::uint64_t device;  // major << 32 | minor
  std::uint64_t inode;
  std::uint64_t mount_id;
  std::uint64_t birth_ns;  // of the epoch; 0: the file system does not say
  unsigned mode;
  unsigned links;
  std::uint64_t is_device;  // of a device file: major << 32 | minor
};

inline constexpr unsigned stat_mount_id = 0x1000;  // STATX_MNT_ID, Linux 5.8
inline constexpr int at_cwd = -100;                // AT_FDCWD
inline constexpr int at_empty_path = 0x1000;       // AT_EMPTY_PATH
inline constexpr int at_do_not_sync = 0x4000;      // AT_STATX_DONT_SYNC
inline constexpr int at_no_automount = 0x800;      // AT_NO_AUTOMOUNT

/// A time of a file or of the clock that files have, of the epoch.
constexpr std::uint64_t ns_of(std::int64_t s, std::int64_t ns) {
  return static_cast<std::uint64_t>(s) * 1'000'000'000 + static_cast<std::uint64_t>(ns);
}

inline bool identify(int dir, char const* path, int flags, file_identity& to) {
  struct statx seen;
  long const result =
      call(SYS_statx, dir, as_long(path), flags | at_do_not_sync | at_no_automount,
           STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BTIME | stat_mount_id, as_long(&seen));
  if (failed(result)) return false;
  to.device = static_cast<std::uint64_t>(seen.stx_dev_major) << 32 | seen.stx_dev_minor;
  to.inode = seen.stx_ino;
  to.mode = seen.stx_mode;
  to.links = seen.stx_nlink;
  to.is_device = static_cast<std::uint64_t>(seen.stx_rdev_major) << 32 | seen.stx_rdev_minor;
  to.birth_ns =
      (seen.stx_mask & STATX_BTIME) == 0 ? 0 : ns_of(seen.stx_btime.tv_sec, seen.stx_btime.tv_nsec);
  // stx_mnt_id follows stx_dev_*; older headers call it spare.
  to.mount_id =
      (seen.stx_mask & stat_mount_id) != 0
          ? *reinterpret_cast<std::uint64_t const*>(reinterpret_cast<char const*>(&seen) + 0x90)
          : 0;
  return true;
}

/// Its file system lies on a device here: no server is asked. btrfs does not say so.
constexpr bool is_on_device(std::uint64_t device) { return device >> 32 != 0; }

/// The size of an open file; 0 when it cannot be told.
inline std::uint64_t size_of(int fd, int flags = 0) {
  struct statx seen;
  long const result =
      call(SYS_statx, fd, as_long(""), at_empty_path | flags, STATX_SIZE, as_long(&seen));
  return failed(result) ? 0 : seen.stx_size;
}

inline long futex_wait(void* word, std::uint32_t seen, std::int64_t deadline_ns,
                       std::uint32_t mask) {
  struct {
    std::int64_t s, ns;
  } const deadline{deadline_ns / 1'000'000'000, deadline_ns % 1'000'000'000};
  return call(SYS_futex, as_long(word), FUTEX_WAIT_BITSET, seen, as_long(&deadline), 0,
              static_cast<long>(mask));
}

inline long futex_wake(void* word, std::uint32_t mask) {
  return call(SYS_futex, as_long(word), FUTEX_WAKE_BITSET, 0x7fffffff, 0, 0,
              static_cast<long>(mask));
}

}  // namespace sluice::sys
