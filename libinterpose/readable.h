// SPDX-License-Identifier: Apache-2.0
// Tells whether memory that a program points to can be read. A program may pass any address; the
// kernel answers EFAULT to one that points nowhere, so the stage looks before it reads, and leaves
// such calls to the kernel. Some places cannot go away while a call is made, and need no question:
// the stack that the process began with, from the deepest place it was seen in use; the program's
// own image; its heap below the break. For two more the kernel is asked once for each page: the top
// of the calling thread's own stack, and the heaps that malloc gives to threads. A program that
// takes pages out of the first three itself (mprotect, munmap, mremap, mmap; see note_taken_away)
// has no such places from then on; for the others the kernel is asked again. For any other address
// it is asked each time: libc unmaps memory too, when it frees, and nobody hears of that.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/path_text.h"
#include "state.h"

namespace sluice {

inline constexpr std::uintptr_t page_size = 4096;  // or a part of one
static_assert(core::max_path <= page_size);

inline constexpr std::uintptr_t no_limit = 0;
struct region {
  std::atomic<std::uintptr_t> low{~std::uintptr_t{0}};
  std::uintptr_t const* limit = &no_limit;  // a page of it follows what a string may begin with
};
struct alignas(64) known_memory {
  region stack, image, heap;
  std::uintptr_t stack_limit = 0, image_limit = 0;  // zeros follow them, so with a page more
  std::uintptr_t image_end = 0;
  std::uintptr_t nothing = 0;
  bool is_simulated = false;
  std::atomic<bool> has_holes{false};
  std::atomic<bool> has_constants{false};  // pages were made such that they may not be written
  // Grows when pages go away that somebody asked for; what threads learned of their own stacks
  // before is forgotten. Those lie between the two bounds.
  std::atomic<std::uint32_t> version{0};
  std::atomic<bool> has_arenas{false};
  std::atomic<std::uintptr_t> own_low{~std::uintptr_t{0}}, own_end{0};
  // malloc's arenas, each at the place its number has; private_map::arena_asked has their pages.
  std::atomic<std::uintptr_t> arena[arena_places] = {};  // odd: what lies there is none; 0: free
};
extern known_memory known __attribute__((visibility("hidden")));

/// glibc gives threads heaps of their own (arenas), which begin at a multiple of this. Their first
/// words are `heap_info` of malloc's arena.c, the same since 2.10. The first part of an arena is
/// never given back, and its head says how much of it is in use.
inline constexpr std::uintptr_t arena_span = std::uintptr_t{64} << 20;
struct arena_head {
  std::uintptr_t state, previous;
  std::atomic<std::size_t> size;
};
inline unsigned arena_place(std::uintptr_t at) { return at / arena_span % arena_places; }
static_assert(arena_span / page_size == arena_pages);

/// Readable pages at the top of the calling thread's stack: its thread pointer lies in the last.
struct own_stack {
  std::uintptr_t low = 0, end = 0;
  std::uint32_t version = 0;
};
extern thread_local constinit own_stack own
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// Finds these places, once.
void learn_memory();
bool ask_for_text(char const* text, std::size_t most);
bool ask_for_bytes(void const* p, std::size_t size);
bool ends_within(char const* text, std::size_t size);  // which can be read

inline bool is_in(region const& r, std::uintptr_t at) {
  return at >= r.low.load(std::memory_order_relaxed) && at < *r.limit - page_size;
}
/// A string that begins here may be read to its end, or core::max_path bytes of it.
inline bool is_known(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p);
  return is_in(known.stack, at) || is_in(known.image, at) || is_in(known.heap, at);
}
/// So many bytes of the calling thread's own stack, from this one.
inline std::size_t own_bytes(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p);
  bool const is_own =
      at >= own.low && at < own.end && own.version == known.version.load(std::memory_order_relaxed);
  return is_own ? own.end - at : 0;
}
/// The same for an arena: to the end of the page, or of the next one.
inline std::size_t arena_bytes(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p);
  std::uintptr_t const begin = at & -arena_span;
  unsigned const place = arena_place(at);
  if (begin == 0 || known.arena[place].load(std::memory_order_relaxed) != begin) return 0;
  auto const* const head = reinterpret_cast<arena_head const*>(begin);
  std::size_t const used = head->size.load(std::memory_order_relaxed);
  std::uintptr_t const page = (at - begin) / page_size;
  auto const& asked = stage.mine->arena_asked[place];
  auto const is_asked = [&](std::uintptr_t n) {
    return (n + 1) * page_size <= used && n < arena_span / page_size &&
           (asked[n / 64].load(std::memory_order_relaxed) >> n % 64 & 1) != 0;
  };
  if (!is_asked(page)) return 0;
  return (page + (is_asked(page + 1) ? 2 : 1)) * page_size - (at - begin);
}
inline std::size_t asked_bytes(void const* p) {
  std::size_t const size = own_bytes(p);
  return size != 0 ? size : arena_bytes(p);
}
inline bool is_asked_text(char const* text) {
  std::size_t const size = asked_bytes(text);
  return size >= core::max_path || (size != 0 && ends_within(text, size));
}

/// Up to its end, or core::max_path bytes.
inline bool can_read_text(char const* text) {
  return is_known(text) || is_asked_text(text) || ask_for_text(text, core::max_path);
}

/// Both ends, and no page fits between.
inline bool are_known(void const* p, std::size_t size) {
  bool const is_small = size - 1 < page_size;
  return is_small && is_known(p) && is_known(static_cast<char const*>(p) + size - 1);
}
template <class T>
bool can_read(T const* p, std::size_t count = 1) {
  std::size_t const size = count * sizeof(T);
  return are_known(p, size) || asked_bytes(p) >= size || ask_for_bytes(p, size);
}

/// Which of the first three places it is in, or any.
region const* region_of(void const* p);

/// The program changes these pages so that they may not be readable any more.
void note_taken_away(std::uintptr_t at, std::size_t size);
/// Whether advice (madvise) does that, or takes pages from a child.
constexpr bool takes_away(int advice) {
  constexpr int dont_fork = 10, guard_install = 102;  // the latter of Linux 6.13
  return advice == dont_fork || advice == guard_install;
}
/// Of process_madvise, which may be about this process.
void note_advice(iovec const* parts, std::size_t count, int advice);
/// Shared memory from there on goes. Only what was put over other pages could be of the first three
/// places, and shmat() has told of that.
void note_detached(std::uintptr_t at);
/// The program sets the break, and libc does not hear of it. 0: it only asks.
void note_break(std::uintptr_t at);

}  // namespace sluice
