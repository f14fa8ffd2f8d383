// SPDX-License-Identifier: Apache-2.0
#include "name_buffer.h"

#include <errno.h>

#include "state.h"

namespace sluice {

void append_number(char* to, unsigned& at, unsigned value) {
  char digits[10];
  unsigned count = 0;
  do digits[count++] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  while (count > 0) to[at++] = digits[--count];
  to[at] = 0;
}

namespace {

long read_link_below(std::string_view folder, std::string_view what, char* to, unsigned room) {
  char link[48] = {};
  __builtin_memcpy(link, folder.data(), folder.size());
  __builtin_memcpy(link + folder.size(), what.data(), what.size());
  return sys::call(SYS_readlink, sys::as_long(link), sys::as_long(to), room);
}

}  // namespace

long read_own_link(std::string_view what, char* to, unsigned room) {
  long const length = is_apart() ? -ENOENT : read_link_below("/proc/self/", what, to, room);
  return length != -ENOENT ? length : read_link_below("/proc/thread-self/", what, to, room);
}

long link_of_fd(int fd, char* to, unsigned room) {
  char what[16] = "fd/";
  unsigned at = 3;
  append_number(what, at, static_cast<unsigned>(fd));
  return read_own_link({what, at}, to, room);
}

unsigned name_of_fd(int fd, char* to, unsigned room) {
  long const length = link_of_fd(fd, to, room);
  return length <= 0 || to[0] != '/' ? 0 : static_cast<unsigned>(length);
}

[[gnu::noinline, gnu::cold]] bool name_buffer::grow() {
  long const at = sys::map(longest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(at)) return false;
  text_ = reinterpret_cast<char*>(at);
  __builtin_memcpy(text_, near_, sizeof near_);
  return true;
}

// What fills the room may have been cut.
template <class Read>
int name_buffer::fill(Read&& read) {
  long length = read();
  if (length == room() && !holds(room() + 1)) return -ENOMEM;
  if (length == short_name) length = read();
  if (length >= room()) return -ENAMETOOLONG;
  if (length >= 0) text_[length] = 0;
  return static_cast<int>(length);
}

int name_buffer::path_or_none(int length) const {
  if (length <= 0 || text_[0] == '/') return length;
  return text_[0] == '(' ? -ENOENT : 0;  // "(unreachable)": it lies outside of the root
}

int name_buffer::ask(int fd) {
  return path_or_none(fill([&] { return link_of_fd(fd, text_, room()); }));
}

int name_buffer::ask_cwd() {
  auto const read = [&] { return sys::call(SYS_getcwd, sys::as_long(text_), room()); };
  long length = read();
  if (length == -ERANGE && holds(room() + 1)) length = read();
  return path_or_none(static_cast<int>(length > 0 ? length - 1 : length));
}

int name_buffer::ask_link(int dir, char const* path) {
  return fill([&] {
    return sys::call(SYS_readlinkat, dir, sys::as_long(path), sys::as_long(text_), room());
  });
}

}  // namespace sluice
