// SPDX-License-Identifier: Apache-2.0
#include "order/mark.h"

#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "abi/order_area.h"

namespace sluice::order {

bool has_mark(int fd, superblock const& s) {
  abi::order_mark mark = {};
  if (fgetxattr(fd, abi::order_mark_name, &mark, sizeof mark) != sizeof mark) return false;
  static_assert(sizeof mark.log_id == sizeof s.id);
  return std::memcmp(mark.log_id, s.id, sizeof s.id) == 0 && mark.generation >= s.generation;
}

int remove_mark(int fd) {
  if (fremovexattr(fd, abi::order_mark_name) == 0) return 0;
  return errno == ENODATA || errno == EOPNOTSUPP ? 0 : errno;
}

}  // namespace sluice::order
