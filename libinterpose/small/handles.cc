// SPDX-License-Identifier: Apache-2.0
// Functions of files that a program finds past us: through a handle of libc, or from a library that
// prefers its own or has a namespace of its own. They would not see what waits, so nothing waits in
// such a program from then on. RTLD_NEXT is none of these: what finds our functions' next so is
// called by them. The jumps that call these are in dlsym.S; they may come before our start.
#include <cstdint>

#include "loaded.h"
#include "small/gather.h"

namespace sluice::gather {

namespace {

constexpr int deep_bind = 8;  // RTLD_DEEPBIND: <dlfcn.h> declares what is exported here
constexpr std::uintptr_t own_namespace = 0;  // LM_ID_BASE

using find_function = void*(void*, char const*);
using find_version_function = void*(void*, char const*, char const*);

/// RTLD_DEFAULT and RTLD_NEXT are none.
bool is_handle(void* given) {
  auto const word = reinterpret_cast<std::uintptr_t>(given);
  return word != 0 && word != ~std::uintptr_t{0};
}

/// A function of ours was asked for; `found`: what the program gets.
void note_found(void const* own, void const* found) {
  if (found != nullptr && found != own) end_for_good();
}

}  // namespace

#define BEFORE(symbol, parameters) \
  extern "C" __attribute__((visibility("hidden"))) void* sluice_before_##symbol parameters
#define NEXT(symbol) loaded::find({#symbol, loaded::hash_of(#symbol), nullptr})

BEFORE(dlsym, (void* handle, char const* name)) {
  void* const next = NEXT(dlsym);
  void* const own = is_handle(handle) ? loaded::find_own(name) : nullptr;
  if (own != nullptr && next != nullptr)
    note_found(own, reinterpret_cast<find_function*>(next)(handle, name));
  return next;
}

BEFORE(dlvsym, (void* handle, char const* name, char const* version)) {
  void* const next = NEXT(dlvsym);
  void* const own = is_handle(handle) ? loaded::find_own(name, version) : nullptr;
  if (own != nullptr && next != nullptr)
    note_found(own, reinterpret_cast<find_version_function*>(next)(handle, name, version));
  return next;
}

BEFORE(dlopen, (char const*, int flags)) {
  if ((flags & deep_bind) != 0) end_for_good();
  return NEXT(dlopen);
}

BEFORE(dlmopen, (std::uintptr_t to, char const*, int flags)) {
  if (to != own_namespace || (flags & deep_bind) != 0) end_for_good();
  return NEXT(dlmopen);
}

}  // namespace sluice::gather
