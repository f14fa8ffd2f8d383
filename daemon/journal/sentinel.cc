// SPDX-License-Identifier: Apache-2.0
#include "journal/sentinel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "journal/held_file.h"

namespace sluice::journal {

namespace {

/// A message of one byte and a descriptor.
struct message {
  char byte = 'w';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr head = {};

  message() {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = room;
    head.msg_controllen = sizeof room;
  }
};

}  // namespace

int sentinels::heard() {
  int error = 0;
  for (descriptor const& fd : take()) {
    if (syncfs(fd.get()) != 0 && error == 0) error = errno;
    put(fd);
  }
  return error;
}

void sentinels::keep(int fd, struct stat const& st) {
  if (to_ < 0 || kept_.count(st.st_dev) != 0) return;
  if (descriptor const beside = open_beside(fd, st)) put(beside);
}

std::vector<descriptor> sentinels::take() {
  std::vector<descriptor> all;
  kept_.clear();
  for (;;) {
    message m;
    if (from_ < 0 || recvmsg(from_, &m.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) return all;
    cmsghdr const* const c = CMSG_FIRSTHDR(&m.head);
    if (c == nullptr || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    all.emplace_back(fd);
  }
}

void sentinels::put(descriptor const& fd) {
  message m;
  struct stat st = {};
  cmsghdr* const c = CMSG_FIRSTHDR(&m.head);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  int const sent = fd.get();
  std::memcpy(CMSG_DATA(c), &sent, sizeof sent);
  if (fstat(sent, &st) == 0 && sendmsg(to_, &m.head, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
    kept_.insert(st.st_dev);
}

}  // namespace sluice::journal
