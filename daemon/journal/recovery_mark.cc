// SPDX-License-Identifier: Apache-2.0
#include "journal/recovery_mark.h"

#include <sys/xattr.h>

#include <cerrno>

#include "journal/mount_points.h"

namespace sluice::journal {

namespace {

constexpr char const* mark_name = "trusted.sluice.recovered";

}  // namespace

bool has_recovery_mark(int fd, std::string const& mark) {
  char has[128] = {};
  ssize_t const n = getxattr(proc_name(fd).c_str(), mark_name, has, sizeof has - 1);
  return n > 0 && mark == std::string(has, static_cast<std::size_t>(n));
}

int set_recovery_mark(int fd, std::string const& mark) {
  std::string const at = proc_name(fd);
  bool const is_done = mark.empty()
                           ? removexattr(at.c_str(), mark_name) == 0
                           : setxattr(at.c_str(), mark_name, mark.data(), mark.size(), 0) == 0;
  return is_done ? 0 : errno;
}

}  // namespace sluice::journal
