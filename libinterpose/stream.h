// SPDX-License-Identifier: Apache-2.0
// stdio does its I/O inside libc, where no preload sees it. Its work shows in the buffers of the
// FILE: we look at the bytes waiting in them before and after the call. The difference to the bytes
// that the caller got or gave went to the kernel or came from it. It is paid after the call, by the
// caller's thread.
#pragma once

#include <stdio.h>

#include <cstdint>

#include "calls.h"

namespace sluice {

inline constexpr std::uint64_t unknown_bytes = ~std::uint64_t{0};

struct stream_view {
  std::uint64_t unread;       // in the buffer, not yet given to the program
  std::uint64_t unwritten;    // in the buffer, not yet given to the kernel
  std::int64_t began_ns = 0;  // see times.h
};

/// Reads the public head of glibc's FILE, whose layout is part of its ABI. Racy by nature: another
/// thread may use the stream; the figures are then a little off, never dangerous.
inline stream_view look(FILE* f) {
  if (f == nullptr) return {0, 0};
  auto const between = [](char const* low, char const* high) {
    return high > low ? static_cast<std::uint64_t>(high - low) : 0;
  };
  return {between(f->_IO_read_ptr, f->_IO_read_end), between(f->_IO_write_base, f->_IO_write_ptr)};
}

/// -1: no file behind it. A stream in memory has no number, but whatever lay there before it.
inline int fd_of(FILE* f) {
  constexpr int has_file = 0x2000;  // _IO_IS_FILEBUF: what fileno(3) asks, too
  return f != nullptr && (f->_flags & has_file) != 0 ? f->_fileno : -1;
}

inline std::uint64_t length_of(char const* text) {
  return text == nullptr ? 0 : __builtin_strlen(text);
}

void after_read(call id, FILE* f, stream_view const& before, std::uint64_t moved);
void after_write(call id, FILE* f, stream_view const& before, std::uint64_t moved);

}  // namespace sluice
