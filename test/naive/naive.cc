// SPDX-License-Identifier: Apache-2.0
// A preload shim as one would write it on the first day; every shortcut in it is deliberate. It is
// the control of the guest-safety tests: a hazard's test that passes under this shim tests nothing.
// Shortcuts: real functions looked up at the first call; state made in the constructor; one mutex,
// held while sleeping; sleeps ended by a signal become EINTR; errno not kept; a log line on
// standard output and a log file kept open; libc called by name; mode passed only with a plain bit
// test; vfork wrapped in C; a big thread-local buffer and a guard in it; pipes and devices delayed
// like files; mmap records in a map that allocates; default symbol versions; no care for exec.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace {
struct rules {
  double rate = 500;
  std::mutex lock;
  std::map<std::string, long> calls;
  double next_s = 0;
};

rules* state;
int log_fd = -1;
thread_local __attribute__((tls_model("initial-exec"))) char line[65536];
thread_local bool inside;

template <typename function>
function* real(char const* name) {
  return reinterpret_cast<function*>(dlsym(RTLD_NEXT, name));
}

int charge(char const* name) {
  if (inside) return 0;
  inside = true;
  state->lock.lock();
  errno = 0;
  ++state->calls[name];
  printf("[shim] %s\n", name);
  fflush(stdout);
  if (log_fd >= 0) {
    int const n = snprintf(line, sizeof line, "%s\n", name);
    static auto* real_write = real<ssize_t(int, void const*, size_t)>("write");
    real_write(log_fd, line, static_cast<size_t>(n));
  }
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  double const now = static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  if (state->next_s < now) state->next_s = now;
  state->next_s += 1 / state->rate;
  long const wait_ns = static_cast<long>((state->next_s - now) * 1e9);
  timespec const pause{wait_ns / 1000000000, wait_ns % 1000000000};
  int const interrupted = nanosleep(&pause, nullptr);
  state->lock.unlock();
  inside = false;
  return interrupted;
}

__attribute__((constructor)) void begin() {
  state = new rules;
  char const* rate = getenv("NAIVE_RATE");
  if (rate) state->rate = atof(rate);
  inside = true;
  log_fd =
      ::open(getenv("NAIVE_LOG") ? getenv("NAIVE_LOG") : "/dev/null", O_WRONLY | O_CREAT, 0600);
  inside = false;
}
}  // namespace

extern "C" {

int open(char const* path, int flags, ...) {
  int mode = 0;
  if ((flags & O_CREAT) == O_CREAT) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, int);
    va_end(more);
  }
  if (charge("open") != 0) return -1;
  static auto* next = real<int(char const*, int, ...)>("open");
  return next(path, flags, mode);
}

ssize_t read(int fd, void* to, size_t n) {
  if (charge("read") != 0) return -1;
  static auto* next = real<ssize_t(int, void*, size_t)>("read");
  return next(fd, to, n);
}

ssize_t pread(int fd, void* to, size_t n, off_t at) {
  if (charge("pread") != 0) return -1;
  static auto* next = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return next(fd, to, n, at);
}

ssize_t preadv2(int fd, iovec const* parts, int n, off_t at, int flags) {
  if (charge("preadv2") != 0) return -1;
  static auto* next = real<ssize_t(int, iovec const*, int, off_t, int)>("preadv2");
  return next(fd, parts, n, at, flags);
}

ssize_t write(int fd, void const* from, size_t n) {
  if (charge("write") != 0) return -1;
  static auto* next = real<ssize_t(int, void const*, size_t)>("write");
  return next(fd, from, n);
}

int close(int fd) {
  if (charge("close") != 0) return -1;
  static auto* next = real<int(int)>("close");
  return next(fd);
}

int stat(char const* path, struct stat* s) noexcept {
  if (charge("stat") != 0) return -1;
  static auto* next = real<int(char const*, struct stat*)>("stat");
  return next(path, s);
}

int rename(char const* from, char const* to) noexcept {
  if (charge("rename") != 0) return -1;
  static auto* next = real<int(char const*, char const*)>("rename");
  return next(from, to);
}

char* realpath(char const* path, char* to) noexcept {
  charge("realpath");
  static auto* next = real<char*(char const*, char*)>("realpath");
  return next(path, to);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  charge("mmap");
  static auto* next = real<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return next(at, size, protection, flags, fd, offset);
}

pid_t vfork() noexcept {
  static auto* next = real<pid_t()>("vfork");
  pid_t const child = next();
  if (child > 0) charge("vfork");
  return child;
}
}
