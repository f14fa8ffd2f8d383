// SPDX-License-Identifier: Apache-2.0
// Descriptors that came with a message, which the kernel has written.
#pragma once

#include <sys/socket.h>

#include <cstddef>

namespace sluice {

template <class Do>
void each_of_fds(msghdr const& message, Do&& act) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    auto const* fds = reinterpret_cast<int const*>(CMSG_DATA(part));
    std::size_t const count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) act(fds[i]);
  }
}

inline bool carries_fds(msghdr const& message) {
  bool is_any = false;
  each_of_fds(message, [&](int) { is_any = true; });
  return is_any;
}

}  // namespace sluice
