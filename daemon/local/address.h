// SPDX-License-Identifier: Apache-2.0
// The address of a socket file. sun_path holds 107 bytes and run directories may be deeper, so a
// long path is reached through its directory's descriptor.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "base/descriptor.h"

namespace sluice::local {

struct address {
  sockaddr_un name = {};
  descriptor directory;  // keeps /proc/self/fd/N valid as long as the address is used

  /// Throws when the directory cannot be reached (errno is kept in `why`).
  explicit address(std::string const& path);
  sockaddr const* get() const { return reinterpret_cast<sockaddr const*>(&name); }
};

}  // namespace sluice::local
