// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC -Wl,--hash-style=sysv
// A library, loaded by late.cc, that brings a function of files which libc lacks, and calls it. Its
// table of names is of the old kind.
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>

extern "C" int openat2(int dir, char const* path, open_how* how, size_t) {
  return openat(dir, path, static_cast<int>(how->flags));
}

extern "C" int late_open(char const* path) {
  open_how how{};
  how.flags = O_RDONLY;
  return openat2(AT_FDCWD, path, &how, sizeof how);
}
