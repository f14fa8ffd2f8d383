// SPDX-License-Identifier: Apache-2.0
// Whether what a program points to can be read. A program may pass any address; the kernel answers
// EFAULT to one that points nowhere, so the stage looks before it reads, and leaves such calls to
// the kernel.
// Three places cannot go away while a call is made, and need no question: the stack that the
// process began with, from the deepest place it was seen in use; the program's own image; its heap
// below the break. A program that takes pages out of them itself (mprotect, munmap, mremap, mmap;
// see note_taken_away) has no such places from then on. Of any other address the kernel is asked
// each time: libc unmaps memory too, when it frees, and nobody hears of that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/path_text.h"
#include "state.h"

namespace sluice {

struct region {
  std::atomic<std::uintptr_t> low{~std::uintptr_t{0}};
  std::uintptr_t const* limit = nullptr;  // a page of it is behind what a string may begin with
};
struct alignas(64) known_memory {
  region stack, image, heap;
  std::uintptr_t stack_limit = 0, image_limit = 0;  // zeros are behind them, so with a page more
  std::uintptr_t image_end = 0;
  std::uintptr_t nothing = 0;
  std::atomic<bool> has_holes{false};
};
extern known_memory known __attribute__((visibility("hidden")));

inline constexpr std::uintptr_t page_size = 4096;  // or a part of one
static_assert(core::max_path <= page_size);

/// Finds these places, once.
void learn_memory();
bool ask_for_text(char const* text, std::size_t most);
bool ask_for_bytes(void const* p, std::size_t size);

inline bool is_in(region const& r, std::uintptr_t at) {
  return at >= r.low.load(std::memory_order_relaxed) && at < *r.limit - page_size;
}
/// A string that begins here may be read to its end, or core::max_path bytes of it.
inline bool is_known(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p);
  return is_in(known.stack, at) || is_in(known.image, at) || is_in(known.heap, at);
}

/// Up to its end, or core::max_path bytes.
inline bool can_read_text(char const* text) {
  return is_known(text) || ask_for_text(text, core::max_path);
}

/// Both ends, and no page fits between.
inline bool are_known(void const* p, std::size_t size) {
  bool const is_small = size - 1 < page_size;
  return is_small && is_known(p) && is_known(static_cast<char const*>(p) + size - 1);
}
template <class T>
bool can_read(T const* p, std::size_t count = 1) {
  std::size_t const size = count * sizeof(T);
  return are_known(p, size) || ask_for_bytes(p, size);
}

/// Which of the three places it is in, or any.
region const* region_of(void const* p);

/// The program changes these pages so that they may not be readable any more.
void note_taken_away(std::uintptr_t at, std::size_t size);

}  // namespace sluice
