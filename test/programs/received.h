// SPDX-License-Identifier: Apache-2.0
// A descriptor that travels in a message.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include "check.h"

/// Sends it through a socket to this process itself; what arrives is another number of it.
inline int received_by_socket(int fd) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  CHECK(sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
  head = CMSG_FIRSTHDR(&message);
  CHECK(head != nullptr && head->cmsg_type == SCM_RIGHTS);
  int received = -1;
  memcpy(&received, CMSG_DATA(head), sizeof received);
  close(ends[0]);
  close(ends[1]);
  return received;
}
