// SPDX-License-Identifier: Apache-2.0
#include "local/attachment.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "local/local.h"

namespace sluice::local {

namespace {

/// Room for the one descriptor of a packet.
union ancillary {
  cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
};

descriptor file_with(std::string const& text) {
  descriptor file(memfd_create("sluice", MFD_CLOEXEC));
  for (std::size_t at = 0; file && at < text.size();) {
    ssize_t const n = write(file.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return descriptor();
    at += static_cast<std::size_t>(n);
  }
  return file;
}

}  // namespace

ssize_t send_text(int socket, std::string const& text, int flags) {
  if (text.size() <= most_bytes) return send(socket, text.data(), text.size(), flags);
  if (text.size() > most_attached_bytes) {
    errno = EMSGSIZE;
    return -1;
  }
  descriptor const file = file_with(text);
  if (!file) return -1;
  std::string packet = fmt::format("{{\"attached\": {}}}", text.size());
  iovec part = {packet.data(), packet.size()};
  ancillary beside = {};
  msghdr m = {};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = &beside;
  m.msg_controllen = sizeof beside;
  cmsghdr* const head = CMSG_FIRSTHDR(&m);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  int const fd = file.get();
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return sendmsg(socket, &m, flags);
}

next_packet look_at_packet(int socket) {
  // Tells an empty packet from the end: each packet has credentials then. They fill the room below.
  int const yes = 1;
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0)
    return next_packet::burdened;
  union {
    cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(ucred))];
  } beside = {};
  msghdr m = {};
  while (true) {
    m.msg_control = &beside;
    m.msg_controllen = CMSG_LEN(sizeof(ucred));  // no room for a descriptor
    ssize_t const n = recvmsg(socket, &m, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return next_packet::none;
    if (n < 0 && (errno == EINTR || errno == ECONNRESET)) continue;  // told once, before the queue
    if (n < 0 || (m.msg_flags & MSG_CTRUNC) != 0) return next_packet::burdened;
    return m.msg_controllen == 0 ? next_packet::none : next_packet::plain;
  }
}

namespace {

/// Looking gives no descriptor away: the packet keeps it until it is taken.
received receive_without(int socket, std::span<char> buffer) {
  msghdr m = {};
  ssize_t const waiting = recvmsg(socket, &m, MSG_PEEK | MSG_TRUNC);
  if (waiting < 0) return {waiting, {}};
  if ((m.msg_flags & MSG_CTRUNC) != 0) return {waiting, {}, true};
  return {recv(socket, buffer.data(), buffer.size(), MSG_TRUNC), {}};
}

}  // namespace

received receive_packet(int socket, std::span<char> buffer, bool may_attach) {
  if (!may_attach) return receive_without(socket, buffer);
  iovec part = {buffer.data(), buffer.size()};
  ancillary beside = {};
  msghdr m = {};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = &beside;
  m.msg_controllen = CMSG_LEN(sizeof(int));  // CMSG_SPACE has room for two
  received r = {recvmsg(socket, &m, MSG_TRUNC | MSG_CMSG_CLOEXEC), descriptor()};
  if (r.bytes < 0) return r;
  r.shed = (m.msg_flags & MSG_CTRUNC) != 0;
  cmsghdr const* const h = CMSG_FIRSTHDR(&m);
  if (h == nullptr || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) return r;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(h), sizeof fd);
  r.attached = descriptor(fd);
  return r;
}

std::optional<std::string> read_attached(descriptor const& file) {
  struct stat s = {};
  if (fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
  if (s.st_size < 0 || static_cast<std::size_t>(s.st_size) > most_attached_bytes)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(s.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    ssize_t const n = pread(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    at += static_cast<std::size_t>(n);
  }
  return text;
}

}  // namespace sluice::local
