// SPDX-License-Identifier: Apache-2.0
// A message of one value between two processes of ours, with descriptors or without.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace sluice {

template <class Words>
class letter {
 public:
  Words words;
  std::array<descriptor, 2> fds = {};  // none after one that is none

  bool send_to(int socket) {
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * 2)] = {};
    iovec all = {&words, sizeof words};
    msghdr head = {};
    head.msg_iov = &all;
    head.msg_iovlen = 1;
    std::array<int, 2> const sent = {fds[0].get(), fds[1].get()};
    if (fds[0]) {
      std::size_t const bytes = sizeof(int) * (fds[1] ? 2 : 1);
      head.msg_control = room;
      head.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* const c = CMSG_FIRSTHDR(&head);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(c), sent.data(), bytes);
    }
    return again([&] { return sendmsg(socket, &head, MSG_NOSIGNAL); }) == sizeof words;
  }

  /// False: the other one is gone, or says what is no such message.
  bool take_from(int socket) {
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * 2)] = {};
    iovec all = {&words, sizeof words};
    msghdr head = {};
    head.msg_iov = &all;
    head.msg_iovlen = 1;
    head.msg_control = room;
    head.msg_controllen = sizeof room;
    ssize_t const got = again([&] { return recvmsg(socket, &head, MSG_CMSG_CLOEXEC); });
    cmsghdr const* const c = got >= 0 ? CMSG_FIRSTHDR(&head) : nullptr;
    if (c != nullptr && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
      take_descriptors(*c);
    return got == sizeof words && (head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  }

 private:
  void take_descriptors(cmsghdr const& c) {
    std::array<int, 2> taken = {-1, -1};
    std::size_t const bytes = c.cmsg_len - CMSG_LEN(0);
    std::memcpy(taken.data(), CMSG_DATA(&c), bytes < sizeof taken ? bytes : sizeof taken);
    for (std::size_t i = 0; i < taken.size(); ++i) fds[i] = descriptor(taken[i]);
  }

  template <class Call>
  static ssize_t again(Call const& call) {
    ssize_t got = 0;
    do got = call();
    while (got < 0 && errno == EINTR);
    return got;
  }
};

}  // namespace sluice
