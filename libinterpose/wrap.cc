// SPDX-License-Identifier: Apache-2.0
// Every interposed symbol, made from calls.def. Per row: the real pointer (its own resolver until
// the first call has looked the symbol up), the exported wrapper, and the body
// for the case that we are active. An inactive call is a compare, a branch and a jump; the body is
// a function of its own so that no frame is built before. The wrapper's C++ name is ours and only
// its assembler name is libc's, so no header of libc is in the way.
#include "attach.h"
#include "extras.h"
#include "loaded.h"
#include "meter.h"
#include "rows.h"
#include "stream.h"
#include "times.h"

namespace sluice {

static void begin_process();

namespace {

// What a function says that this libc does not have, each in its own way.
extern "C" long sluice_missing() {
  errno = ENOSYS;
  return -1;
}
extern "C" int sluice_missing_number() { return ENOSYS; }

bool returns_error_number(char const* name) {
  auto const begins = [name](char const* with) {
    return __builtin_strncmp(name, with, __builtin_strlen(with)) == 0;
  };
  return begins("posix_") || begins("pidfd_spawn") || begins("pthread_") || begins("readdir_r");
}
void* missing(char const* name) {
  return returns_error_number(name) ? reinterpret_cast<void*>(&sluice_missing_number)
                                    : reinterpret_cast<void*>(&sluice_missing);
}

// What a real pointer that nobody has called yet leads to: another library's constructor may call
// before ours has run. Looked up at the first call, because a program calls a few of all these, and
// without the loader's help, so that a signal handler or an allocator may be the one who calls. Who
// stands before libc (extras.h) keeps the resolver of a name that is not there, and means libc's.
[[gnu::noinline, gnu::cold]] void* bind(void** real, void* resolver, char const* name,
                                        std::uint32_t hash) {
  bool const is_first = __atomic_load_n(real, __ATOMIC_RELAXED) == resolver;
  begin_process();
  void* const found = loaded::find({name, hash, nullptr});
  if (found == nullptr) return missing(name);
  void* seen = resolver;
  bool const settled =
      __atomic_compare_exchange_n(real, &seen, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return settled || !is_first ? found : seen;
}

template <class Function>
Function* bound(Function*& real, Function* resolver, char const* name, std::uint32_t hash) {
  return reinterpret_cast<Function*>(
      bind(reinterpret_cast<void**>(&real), reinterpret_cast<void*>(resolver), name, hash));
}

stream_view look_and_time(FILE* f) {
  stream_view v = look(f);
  v.began_ns = times::begin_early();
  return v;
}

void fresh(int fd) {
  if (fd >= 0 && !self.is_vfork_child && stage.mine != nullptr) set_fd(fd, entry_outside);
}

// Null when it is no other than the default one.
[[gnu::noinline, gnu::cold]] void* bind_old(char const* name, std::uint32_t hash,
                                            char const* version) {
  void* const found = loaded::find({name, hash, version});
  return found == loaded::find({name, hash, nullptr}) ? nullptr : found;
}

constexpr when cancels = when::cancels;
constexpr when stays = when::before;

}  // namespace

// --- the real functions
// -----------------------------------------------------------------------------------------

#define ROW(sym, ret, params, args)                                                         \
  namespace first {                                                                         \
  static ret sym params { return bound(real::sym, sym, #sym, loaded::hash_of(#sym)) args; } \
  }                                                                                         \
  namespace real {                                                                          \
  constinit decltype(first::sym)* sym = first::sym;                                         \
  }
#include "calls.def"

// Whoever stands before libc asks for its functions beforehand.
static void resolve_all() {
#define ROW(sym, ret, params, args) \
  if (real::sym == first::sym) bound(real::sym, first::sym, #sym, loaded::hash_of(#sym));
#include "calls.def"
}

// A child of fork begins without the pages of files, so a name is dear there, and the next child
// looks it up anew. At the start the loader has just read the same tables.
static void bind_what_children_call() {
#define BIND(sym) bound(real::sym, first::sym, #sym, loaded::hash_of(#sym))
  BIND(close), BIND(dup2), BIND(execve), BIND(_exit);
#undef BIND
}

// Where a target is durable: all real functions are looked up, and order/calls.cc put before them.
[[gnu::noinline, gnu::cold]] static void stand_before_libc() {
  resolve_all();
  each_extra(&extra::stand_before_libc);
}

// The loader calls it, unless a call of the program comes earlier.
__attribute__((constructor)) static void begin_process() {
  attached const how = attach();
  if (how == attached::no) return;
  bind_what_children_call();
  if (how == attached::before_libc) stand_before_libc();
}

// --- the bodies
// -------------------------------------------------------------------------------------------------

#define CALL(sym, ret, params, args, o, where, size, point)                                       \
  [[gnu::noinline]] ret slow::sym params {                                                        \
    place const here = where;                                                                     \
    auto const bytes = static_cast<std::uint64_t>(size);                                          \
    beginning b = begin<call::sym, core::op::o>(here, bytes);                                     \
    if (!b.is(begun::passed)) [[unlikely]] {                                                      \
      if (b.is(begun::not_ours)) return real::sym args;                                           \
      if (b.is(begun::priced)) b = pay_priced<core::op::o>(call::sym, b.entry(), here, bytes);    \
      if (!b.is(begun::passed))                                                                   \
        return call_slowly({call::sym, core::op::o, point, false, 0, bytes, 0}, where, b.entry(), \
                           [=] { return real::sym args; });                                       \
    }                                                                                             \
    ret const r = real::sym args;                                                                 \
    end<core::op::o>(call::sym, here, b, bytes, r);                                               \
    return r;                                                                                     \
  }
#define OPENS(sym, ret, params, args, o, where, makes, point)         \
  [[gnu::noinline]] ret slow::sym params {                            \
    place const here = where;                                         \
    core::op const as = (makes) != 0 ? op_create : core::op::o;       \
    beginning const b = begin_open(call::sym, as, here);              \
    if (!b.is_over()) [[unlikely]] {                                  \
      visit v{call::sym, core::op::o, point, false, 0, 0, 0};         \
      v.manner = as == op_create ? visit::creates : std::uint8_t{0};  \
      return open_slowly(v, here, b, [=] { return real::sym args; }); \
    }                                                                 \
    ret const r = real::sym args;                                     \
    set_fd(r, entry_of_newborn(b.entry()));                           \
    if (r < 0 && b.is(begun::passed)) [[unlikely]]                    \
      count_error(call::sym);                                         \
    return r;                                                         \
  }
#define ERRNO(sym, ret, params, args, o, where, size, point) \
  [[gnu::noinline]] ret slow::sym params {                   \
    place const here = where;                                \
    visit v{call::sym, core::op::o, point, false, 0, 0, 0};  \
    bool const ours = enter_place(v, here);                  \
    ret const r = real::sym args;                            \
    if (ours) leave(v, r != 0, 0);                           \
    return r;                                                \
  }
// Both legs are paid; the call is counted once where it has bytes of one kind only, or two names in
// one target.
#define PAIR(sym, ret, params, args, o1, where1, size1, o2, where2, size2, point)             \
  [[gnu::noinline]] ret slow::sym params {                                                    \
    visit v1{call::sym, core::op::o1, point, false, 0, static_cast<std::uint64_t>(size1), 0}; \
    visit v2{call::sym, core::op::o2, point, false, 0, static_cast<std::uint64_t>(size2), 0}; \
    bool const one = enter_place(v1, where1);                                                 \
    bool const two = enter_other(v2, where2, one ? &v1 : nullptr);                            \
    ret const r = real::sym args;                                                             \
    leave_pair(v1, one, v2, two, is_failure(r), moved_bytes(core::op::o1, r));                \
    return r;                                                                                 \
  }
#define READS(sym, ret, params, args, stream, moved)                          \
  [[gnu::noinline]] ret slow::sym params {                                    \
    stream_view const before = look_and_time(stream);                         \
    ret const r = real::sym args;                                             \
    after_read(call::sym, stream, before, static_cast<std::uint64_t>(moved)); \
    return r;                                                                 \
  }
#define WRITES(sym, ret, params, args, stream, moved)                          \
  [[gnu::noinline]] ret slow::sym params {                                     \
    stream_view const before = look_and_time(stream);                          \
    ret const r = real::sym args;                                              \
    after_write(call::sym, stream, before, static_cast<std::uint64_t>(moved)); \
    return r;                                                                  \
  }
#define FRESH(sym, ret, params, args)      \
  [[gnu::noinline]] ret slow::sym params { \
    ret const r = real::sym args;          \
    fresh(r);                              \
    return r;                              \
  }
#define SPECIAL(...)

namespace {

// The second name of a rename or link: one more op only when it lies in another target.
bool enter_other(visit& v, place const& where, visit const* first) {
  if (first == nullptr) return enter_place(v, where);
  if (!joined()) return false;
  unsigned const entry = resolve(where);
  if (where.kind == place_kind::path &&
      (entry & entry_kind_mask) == (first->entry & entry_kind_mask))
    return false;
  v.has_waited = first->has_waited;
  return enter_second(v, entry, where.kind == place_kind::fd ? where.fd : -1);
}

// Counted once, paid twice.
void leave_pair(visit& v1, bool one, visit& v2, bool two, bool failed, std::uint64_t moved) {
  v1.has_waited |= v2.has_waited;
  if (one) leave(v1, failed, moved);
  v2.has_waited = v1.has_waited;
  if (two && !one) leave(v2, failed, moved);
  if (two && one && v2.is_noted) note_moved(v2, moved);
  if (two && one && (v2.bytes != moved || v2.waited_early())) settle(v2, moved);
}

}  // namespace

#include "calls.def"

// --- the exported names
// -----------------------------------------------------------------------------------------

#define EXPORT __attribute__((visibility("default")))
#define CALL(sym, ret, params, args, o, where, ...)                                                \
  extern "C" EXPORT ret sluice_##sym params __asm__(#sym);                                         \
  ret sluice_##sym params {                                                                        \
    if (stage.active.load(std::memory_order_relaxed) == nullptr || is_elsewhere(where)) [[likely]] \
      return real::sym args;                                                                       \
    return slow::sym args;                                                                         \
  }
#define ROW(sym, ret, params, args)                                         \
  extern "C" EXPORT ret sluice_##sym params __asm__(#sym);                  \
  ret sluice_##sym params {                                                 \
    if (stage.active.load(std::memory_order_relaxed) == nullptr) [[likely]] \
      return real::sym args;                                                \
    return slow::sym args;                                                  \
  }
#define WHERE_MINDED(minds, sym, ret, params, args)        \
  extern "C" EXPORT ret sluice_##sym params __asm__(#sym); \
  ret sluice_##sym params {                                \
    if (!minds()) [[likely]]                               \
      return real::sym args;                               \
    return slow::sym args;                                 \
  }
#define STARTS(sym, ret, params, args) WHERE_MINDED(minds_starts, sym, ret, params, args)
#define ENTERS(sym, ret, params, args) WHERE_MINDED(minds_sandboxes, sym, ret, params, args)
#define ALIAS(alias_name, of)                                                      \
  extern "C" EXPORT decltype(sluice_##of) sluice_##alias_name __asm__(#alias_name) \
      __attribute__((alias(#of)));
#define VARIADIC(sym, ret, params, args, last, forward)    \
  extern "C" EXPORT ret sluice_##sym params __asm__(#sym); \
  ret sluice_##sym params {                                \
    va_list list;                                          \
    va_start(list, last);                                  \
    ret const r = sluice_##forward args;                   \
    va_end(list);                                          \
    return r;                                              \
  }
#define FORWARD(sym, ret, params, args, forward)           \
  extern "C" EXPORT ret sluice_##sym params __asm__(#sym); \
  ret sluice_##sym params { return sluice_##forward args; }
#if defined(__x86_64__)
// A libc that is too old to have the new one has only one, which is metered.
#define VERSIONED(sym, ret, params, args, old_version, new_version)                           \
  __asm__(".symver " #sym "," #sym "@@@" new_version);                                        \
  extern "C" EXPORT ret sluice_old_##sym params;                                              \
  static constinit void* old_##sym = nullptr;                                                 \
  ret sluice_old_##sym params {                                                               \
    if (old_##sym == nullptr) old_##sym = bind_old(#sym, loaded::hash_of(#sym), old_version); \
    auto const old = reinterpret_cast<decltype(&sluice_old_##sym)>(old_##sym);                \
    return old != nullptr ? old args : sluice_##sym args;                                     \
  }                                                                                           \
  __asm__(".symver sluice_old_" #sym "," #sym "@" old_version ",remove");
#endif
#include "calls.def"

}  // namespace sluice
