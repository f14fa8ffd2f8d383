// SPDX-License-Identifier: Apache-2.0
// Finds functions in the objects that the loader has mapped, as dlsym(RTLD_NEXT) would. It does so
// by hand, because dlsym is not in every program: before glibc 2.34 it lives in a library of its
// own, and a reference to today's version of it keeps programs with an older libc from starting at
// all. It is cheaper too: the hashes of the names are computed by the compiler. Objects that are
// there when a program starts stay to its end, so that part is read without a lock, and a signal
// handler may come here.
#pragma once

#include <cstdint>

namespace sluice::loaded {

struct symbol {
  char const* name;
  std::uint32_t hash;
  char const* version;  // null: the default one
};

/// As the GNU tables have it.
consteval std::uint32_t hash_of(char const* name) {
  std::uint32_t hash = 5381;
  for (char const* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  return hash;
}

/// In the objects behind ours that were there from the start, in the order of the loader.
void* find_next(symbol const& wanted);
/// The same, then in all others: a library that brings a function may have been loaded later.
void* find(symbol const& wanted);
/// find() gives libc's own, or nothing: no library after ours has another one.
bool is_libcs(symbol const& wanted);
/// In the object that the kernel maps into every process; null where there is none.
void* find_in_vdso(symbol const& wanted);
/// Our file as the loader was given it; null when that cannot be told.
char const* own_name();
/// pthread_testcancel(), where there is one: with an older libc only programs of threads have it.
void end_if_cancelled();

}  // namespace sluice::loaded
