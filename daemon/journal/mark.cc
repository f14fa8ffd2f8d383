// SPDX-License-Identifier: Apache-2.0
#include "journal/mark.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "abi/order_area.h"
#include "journal/held_file.h"

namespace sluice::journal {

namespace {

bool read_mark(int fd, superblock const& s, abi::order_mark& mark) {
  if (fgetxattr(fd, abi::order_mark_name, &mark, sizeof mark) != sizeof mark) return false;
  static_assert(sizeof mark.log_id == sizeof s.id);
  return std::memcmp(mark.log_id, s.id, sizeof s.id) == 0 && mark.generation >= s.generation;
}

}  // namespace

bool has_mark(int fd, superblock const& s) {
  abi::order_mark mark = {};
  if (!read_mark(fd, s, mark)) return false;
  struct stat st = {};
  return fstat(fd, &st) == 0 && mark.inode == st.st_ino && mark.birth == birth_of(fd).word;
}

bool is_void(int fd, superblock const& s) {
  abi::order_mark mark = {};
  return read_mark(fd, s, mark);
}

names_seen names_of(int fd) {
  char all[1024];
  ssize_t const bytes = flistxattr(fd, all, sizeof all);
  if (bytes < 0) return {true, true};
  names_seen seen = {};
  for (char const* at = all; at < all + bytes; at += std::strlen(at) + 1) {
    seen.may_be_mark |= std::strcmp(at, abi::order_mark_name) == 0;
    seen.may_be_list |= std::strcmp(at, access_list_name) == 0;
  }
  return seen;
}

int unreadable_marks(int fd) {
  if (flistxattr(fd, nullptr, 0) < 0) return errno == EOPNOTSUPP ? 0 : errno;
  // Its owner may list them all the same.
  bool const is_shut = fgetxattr(fd, abi::order_mark_name, nullptr, 0) < 0 && errno == EACCES;
  return is_shut ? EACCES : 0;
}

int remove_mark(int fd) {
  // To ask takes no lock of the file.
  if (fgetxattr(fd, abi::order_mark_name, nullptr, 0) < 0 && errno == ENODATA) return 0;
  if (fremovexattr(fd, abi::order_mark_name) == 0) return 0;
  return errno == ENODATA || errno == EOPNOTSUPP ? 0 : errno;
}

}  // namespace sluice::journal
