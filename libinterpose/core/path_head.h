// SPDX-License-Identifier: Apache-2.0
// The first parts of a directory's name, put together from pieces: `/scratch/data` of
// `/scratch/./data/x/../y` when two parts are wanted. A deeper name counts as the directory that
// holds it. `..` is taken as text: nobody asks whether the part before it was a link.
// Must stay true: whatever the pieces are, the name stays within its buffer, absolute, and without
// empty parts.
#pragma once

#include "core/path_sketch.h"
#include "core/path_text.h"

namespace sluice::core {

inline constexpr unsigned most_head_parts = 16;

class path_head {
 public:
  explicit path_head(unsigned parts)
      : wanted_(parts == 0 || parts > most_head_parts ? most_head_parts : parts) {}

  /// Goes on from where the pieces before lead; an absolute one too.
  void add(char const* piece, unsigned length) {
    for (unsigned at = 0; at < length;) {
      if (piece[at] == '/') {
        ++at;
        continue;
      }
      unsigned end = at;
      while (end < length && piece[end] != '/') ++end;
      part(piece + at, end - at);
      at = end;
    }
  }

  char const* text() const { return length_ == 0 ? "/" : text_; }
  unsigned length() const { return length_ == 0 ? 1 : length_; }

 private:
  void part(char const* name, unsigned length) {
    if (is_dots(name, length)) {
      if (length == 2) leave();
      return;
    }
    bool const is_wanted = depth_ == kept_ && kept_ < wanted_;
    ++depth_;
    if (!is_wanted || length_ + 1 + length >= sketch_text_bytes) return;
    begin_[kept_++] = length_;
    text_[length_++] = '/';
    for (unsigned i = 0; i < length; ++i) text_[length_++] = name[i];
  }

  void leave() {
    if (depth_ == 0) return;
    if (depth_-- == kept_) length_ = begin_[--kept_];
  }

  unsigned wanted_;
  unsigned depth_ = 0;   // of where the pieces lead
  unsigned kept_ = 0;    // parts of it that are in the text
  unsigned length_ = 0;  // 0: the root
  unsigned begin_[most_head_parts] = {};
  char text_[sketch_text_bytes] = {};
};

}  // namespace sluice::core
