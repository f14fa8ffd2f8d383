// SPDX-License-Identifier: Apache-2.0
// The floor of interposition: a preload object whose calls do nothing but jump to libc through a
// pointer that was resolved once. What sluice adds above this is its own; what this adds belongs to
// the method. It covers the calls that `calls` measures, no others. Built by overhead.py, not by
// the Makefile.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace {

template <typename F>
F next(F, char const* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

using open_call = int (*)(char const*, int, ...);
open_call real_open;
decltype(&close) real_close;
decltype(&read) real_read;
decltype(&pread) real_pread;
decltype(&pwrite) real_pwrite;
int (*real_stat)(char const*, struct stat*);
decltype(&getxattr) real_getxattr;

__attribute__((constructor)) void resolve() {
  real_open = next(real_open, "open");
  real_close = next(real_close, "close");
  real_read = next(real_read, "read");
  real_pread = next(real_pread, "pread");
  real_pwrite = next(real_pwrite, "pwrite");
  real_stat = next(real_stat, "stat");
  real_getxattr = next(real_getxattr, "getxattr");
}

}  // namespace

// glibc declares some of these without a throw specification and some with one; C linkage is all
// that counts.
extern "C" {

int open(char const* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return real_open(path, flags, mode);
}

int close(int fd) { return real_close(fd); }

ssize_t read(int fd, void* to, size_t count) { return real_read(fd, to, count); }

ssize_t pread(int fd, void* to, size_t count, off_t at) { return real_pread(fd, to, count, at); }

ssize_t pwrite(int fd, void const* from, size_t count, off_t at) {
  return real_pwrite(fd, from, count, at);
}

int stat(char const* path, struct stat* to) noexcept { return real_stat(path, to); }

ssize_t getxattr(char const* path, char const* name, void* to, size_t size) noexcept {
  return real_getxattr(path, name, to, size);
}

}  // extern "C"
