// SPDX-License-Identifier: Apache-2.0
#include "base/open_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

namespace sluice {

std::string path_of(int fd) {
  char path[PATH_MAX];
  ssize_t const n = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof path);
  return n > 0 && n < static_cast<ssize_t>(sizeof path)
             ? std::string(path, static_cast<std::size_t>(n))
             : std::string();
}

}  // namespace sluice
