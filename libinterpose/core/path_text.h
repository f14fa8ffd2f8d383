// SPDX-License-Identifier: Apache-2.0
// Problem: every call by path asks which directory its name lies in, and a loop over bytes would
// cost more than all the rest of the decision.
// Idea: libc's vector functions where the length is unknown, whole words where it is known; the
// last word overlaps the one before. The question of every call, whether a name lies in a known
// directory, reads aligned blocks of 16 bytes and stops at the first that differs. What stays true:
// no page is touched after the one with the terminating zero, and nothing depends on a byte after
// it, so strings that end at the end of a page, and memory checkers, are safe.
#pragma once

#include <string.h>

#include <cstdint>

// A sanitizer of the address looks at single bytes, and knows nothing of blocks.
#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define SLUICE_PATH_BLOCKS 1
#endif

namespace sluice::core {

constexpr unsigned max_path = 4096;

inline std::uint64_t word_at(char const* p) {
  std::uint64_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

inline bool same_16(char const* a, char const* b) {
  return ((word_at(a) ^ word_at(b)) | (word_at(a + 8) ^ word_at(b + 8))) == 0;
}

inline bool same_short(char const* a, char const* b, unsigned length) {
  if (length >= 8)
    return word_at(a) == word_at(b) && word_at(a + length - 8) == word_at(b + length - 8);
  for (unsigned i = 0; i < length; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

// In steps of 16 bytes, the last one overlapping: names are compared on every call by path, and a
// call of libc would cost more than the comparison.
inline bool equal(char const* a, char const* b, unsigned length) {
  if (length < 16) return same_short(a, b, length);
  for (unsigned i = 16; i < length; i += 16)
    if (!same_16(a + i - 16, b + i - 16)) return false;
  return same_16(a + length - 16, b + length - 16);
}

constexpr std::uint64_t low_bits = 0x0101010101010101ull;

inline bool has_slash(std::uint64_t word) {
  word ^= low_bits * '/';
  return ((word - low_bits) & ~word & low_bits << 7) != 0;
}

// Whether path[from, length) is one plain part: no slash in it, and neither `.` nor `..`. Words
// that reach back before it are shifted: what comes in is zero.
inline bool is_plain_name(char const* path, unsigned from, unsigned length) {
  unsigned left = length - from;
  if (left == 0 || (left <= 2 && path[from] == '.')) return false;
  for (; left >= 8; left -= 8)
    if (has_slash(word_at(path + length - left))) return false;
  if (left == 0) return true;
  if (length < 8) {
    while (left > 0 && path[length - left] != '/') --left;
    return left == 0;
  }
  return !has_slash(word_at(path + length - 8) >> (64 - 8 * left));
}

constexpr unsigned block_size = 16;
constexpr unsigned longest_name_blocks = 256 / block_size + 1;

// Whether `path` is text[0, length), which ends in a slash, and one plain name behind it. `text`
// has block_size - 1 readable bytes before it and as many behind `length`.
#if defined(SLUICE_PATH_BLOCKS)
inline unsigned equal_bytes(__m128i a, __m128i b) {
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)));
}

inline bool is_name_in(char const* path, char const* text, unsigned length) {
  auto const misplaced = reinterpret_cast<std::uintptr_t>(path) % block_size;
  char const* at = path - misplaced;
  auto const wanted =
      reinterpret_cast<std::uintptr_t>(text) - reinterpret_cast<std::uintptr_t>(path);
  char const* const name = path + length;
  auto const block_at = [](auto place) { return reinterpret_cast<__m128i const*>(place); };
  constexpr unsigned all = 0xffff;  // bytes of a block
  __m128i block = _mm_load_si128(block_at(at));
  unsigned equal = equal_bytes(block, _mm_loadu_si128(block_at(wanted + std::uintptr_t(at)))) |
                   ~(~0u << misplaced);  // what lies before the path is nobody's business
  while (name - at >= block_size) {
    if (equal != all) return false;
    at += block_size;
    block = _mm_load_si128(block_at(at));
    equal = equal_bytes(block, _mm_loadu_si128(block_at(wanted + std::uintptr_t(at))));
  }
  unsigned const behind = ~0u << (name - at);
  if ((~equal & ~behind & all) != 0) return false;
  int four_slashes = '/' * 0x01010101;
  __asm__("" : "+r"(four_slashes));  // or it would be a constant in cold memory
  __m128i const slash = _mm_set1_epi32(four_slashes);
  unsigned zeros = equal_bytes(block, _mm_setzero_si128());
  unsigned stops = (zeros | equal_bytes(block, slash)) & behind;
  for (unsigned i = 0; stops == 0; ++i) {
    if (i > longest_name_blocks) return false;
    at += block_size;
    block = _mm_load_si128(block_at(at));
    zeros = equal_bytes(block, _mm_setzero_si128());
    stops = zeros | equal_bytes(block, slash);
  }
  auto const stop = static_cast<unsigned>(__builtin_ctz(stops));
  if ((zeros >> stop & 1) == 0) return false;
  auto const size = at + stop - name;
  return size > 2 || (size != 0 && name[0] != '.');
}
#else
inline bool is_name_in(char const* path, char const* text, unsigned length) {
  auto const whole = static_cast<unsigned>(strnlen(path, max_path));
  return length < whole && whole < max_path && equal(path, text, length) &&
         is_plain_name(path, length, whole);
}
#endif

// A path in parts: its length, where its last part begins, and the length of the directory part (0:
// the name lies in the directory the path starts at).
struct scanned_path {
  unsigned length;
  unsigned last;
  unsigned directory;
};

constexpr std::uint64_t hash_factor = 0xd6e8feb86659fd93ull;

inline std::uint64_t hash_of(char const* text, unsigned length) {
  std::uint64_t h = 0x9e3779b97f4a7c15ull ^ length;
  for (; length >= 8; text += 8, length -= 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, text, 8);
    h = (h ^ word) * hash_factor;
    h ^= h >> 29;
  }
  std::uint64_t rest = 0;
  for (unsigned i = 0; i < length; ++i) rest = rest << 8 | static_cast<unsigned char>(text[i]);
  h = (h ^ rest) * hash_factor;
  return h ^ h >> 32;
}

inline bool is_dots(char const* part, unsigned length) {
  return part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'));
}

inline scanned_path scan(char const* path) {
  auto const length = static_cast<unsigned>(strnlen(path, max_path));
  unsigned end = length;  // of the last part
  while (end > 1 && path[end - 1] == '/') --end;
  auto const* const slash = static_cast<char const*>(memrchr(path, '/', end));
  unsigned const last = slash == nullptr ? 0 : static_cast<unsigned>(slash - path) + 1;
  unsigned directory = last;
  if (last < end && is_dots(path + last, end - last)) directory = end;  // a directory itself
  while (directory > 1 && path[directory - 1] == '/') --directory;
  return {length, last, directory};
}

}  // namespace sluice::core
