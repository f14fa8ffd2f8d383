// SPDX-License-Identifier: Apache-2.0
#include "local/address.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "local/local.h"

namespace sluice::local {

address::address(std::string const& path) {
  std::string short_path = path;
  if (path.size() >= sizeof name.sun_path) {
    auto const slash = path.rfind('/');
    std::string const dir = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    directory = descriptor(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) throw no_daemon(fmt::format("{}: {}", dir, std::strerror(errno)));
    short_path = fmt::format("/proc/self/fd/{}/{}", directory.get(), path.substr(slash + 1));
  }
  if (short_path.size() >= sizeof name.sun_path)
    throw usage_error(fmt::format("{}: the name of the socket is too long", path));
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, short_path.c_str(), short_path.size() + 1);
}

}  // namespace sluice::local
