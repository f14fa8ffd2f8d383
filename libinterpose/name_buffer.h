// SPDX-License-Identifier: Apache-2.0
// Room for the name of a file. Signal handlers and small threads have little stack, and names may
// be 4 KiB long: a short one lies on the stack, a long one in a mapping that lives as long as the
// room. No such room is held while a call waits, so that nobody who leaves a wait for good keeps
// one.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <string_view>

#include "core/path_text.h"
#include "sys.h"

namespace sluice {

inline constexpr unsigned short_name = 512;  // bytes; more does not lie on the stack

/// Memory of its own; `text` is null where 0 bytes are wanted, or the kernel has none.
class mapped_room {
 public:
  explicit mapped_room(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    long const at = sys::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!sys::failed(at)) text_ = reinterpret_cast<char*>(at);
  }
  ~mapped_room() {
    if (text_ != nullptr) sys::call(SYS_munmap, sys::as_long(text_), static_cast<long>(bytes_));
  }
  mapped_room(mapped_room const&) = delete;
  mapped_room& operator=(mapped_room const&) = delete;

  char* text() const { return text_; }

 private:
  std::size_t bytes_;
  char* text_ = nullptr;
};

/// Writes decimal digits, ten at most, and a zero after them.
void append_number(char* to, unsigned& at, unsigned value);

/// A link of our own directory in /proc ("cwd", "exe"), as link_of_fd() says it. Where the first
/// thread of the process has ended, /proc/self has none; a kernel before 3.17 has no thread-self.
long read_own_link(std::string_view what, char* to, unsigned room);
/// What the kernel calls an fd, whatever it is; `room` when that may be longer. A negative error
/// number: it does not say.
long link_of_fd(int fd, char* to, unsigned room);
/// The path the kernel knows an fd by; 0 when it has none, `room` when it may be longer.
unsigned name_of_fd(int fd, char* to, unsigned room);

class name_buffer {
 public:
  // cppcheck-suppress uninitMemberVar  // 512 bytes that are written before they are read
  name_buffer() = default;
  ~name_buffer() {
    if (text_ != near_) sys::call(SYS_munmap, sys::as_long(text_), longest);
  }
  name_buffer(name_buffer const&) = delete;
  name_buffer& operator=(name_buffer const&) = delete;

  char* text() { return text_; }
  char const* text() const { return text_; }
  unsigned room() const { return text_ == near_ ? short_name : longest; }
  /// Makes room for so many bytes and keeps what is there. False: there is none.
  bool holds(std::size_t bytes) { return bytes <= room() || (bytes <= longest && grow()); }

  /// The path the kernel knows an fd by, and a zero after it. Its length; 0: what the fd is has no
  /// path; a negative error number: the kernel does not say.
  int ask(int fd);
  /// The same of the current directory.
  int ask_cwd();
  /// Where a symbolic link leads, with a zero after it; else as above.
  int ask_link(int dir, char const* path);

 private:
  static constexpr unsigned longest = 2 * core::max_path;
  bool grow();
  template <class Read>
  int fill(Read&& read);
  int path_or_none(int length) const;

  char near_[short_name];
  char* text_ = near_;
};

}  // namespace sluice
