// SPDX-License-Identifier: Apache-2.0
// What the hand-written bodies need of calls.def: the real function behind every row (real::read),
// and the declarations of the bodies themselves (slow::close). A real pointer starts as its own
// resolver, so there is no moment at which it may not be called.
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

#define CALL(sym, ret, params, ...) ROW(sym, ret, params)
#define OPENS(sym, ret, params, ...) ROW(sym, ret, params)
#define ERRNO(sym, ret, params, ...) ROW(sym, ret, params)
#define PAIR(sym, ret, params, ...) ROW(sym, ret, params)
#define READS(sym, ret, params, ...) ROW(sym, ret, params)
#define WRITES(sym, ret, params, ...) ROW(sym, ret, params)
#define FRESH(sym, ret, params, args) ROW(sym, ret, params)
#define SPECIAL(sym, ret, params, ...) ROW(sym, ret, params)
#define ALIAS(...)
#define VERSIONED(...)
#define VARIADIC(...)
#define BARE(...)

namespace real {
#define ROW(sym, ret, params) extern ret(*sym) params __attribute__((visibility("hidden")));
#include "calls.def"
#undef ROW
}  // namespace real

namespace slow {
#define ROW(sym, ret, params) ret sym params;
#include "calls.def"
#undef ROW
}  // namespace slow

#undef CALL
#undef OPENS
#undef ERRNO
#undef PAIR
#undef READS
#undef WRITES
#undef FRESH
#undef SPECIAL
#undef ALIAS
#undef VERSIONED
#undef VARIADIC
#undef BARE

}  // namespace sluice
