// SPDX-License-Identifier: Apache-2.0
// Declarations from calls.def for the hand-written bodies: the real function behind every row
// (real::read), and the declarations of the bodies themselves (slow::close). A real pointer starts
// as its own resolver, so it may be called at any moment.
#pragma once

#include <aio.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <wchar.h>

#include <cstddef>

struct FTW;
struct stat;

namespace sluice {
using ftw_function = int(char const*, struct stat const*, int);
using nftw_function = int(char const*, struct stat const*, int, FTW*);

namespace real {
#define ROW(sym, ret, params, args) extern ret(*sym) params __attribute__((visibility("hidden")));
#include "calls.def"
}  // namespace real

namespace slow {
#define ROW(sym, ret, params, args) ret sym params;
#include "calls.def"
}  // namespace slow

}  // namespace sluice

/// Puts body::sym in the place of the real function, which is next::sym from now on.
#define STAND_BEFORE_REAL(sym) \
  next::sym = real::sym;       \
  __atomic_store_n(&real::sym, &body::sym, __ATOMIC_RELEASE);
