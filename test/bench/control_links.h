// SPDX-License-Identifier: Apache-2.0
// How the bytes travel in the benchmark of the control plane. `epoll` is the floor: bare TCP
// sockets with a length before each message, nothing of a library.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "test/bench/control_fleet.h"
#include "wire/context.h"

namespace sluice::bench {

/// What has arrived of one TCP connection; whole messages are taken out at the front.
struct frame_buffer {
  std::vector<std::byte> bytes;
  std::size_t begin = 0;

  /// False: the peer is gone.
  bool read(int fd) {
    if (begin > 0) {
      bytes.erase(bytes.begin(), bytes.begin() + std::ptrdiff_t(begin));
      begin = 0;
    }
    std::byte chunk[65536];
    for (;;) {
      ssize_t const n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n == 0) return false;
      bytes.insert(bytes.end(), chunk, chunk + n);
      if (n < ssize_t(sizeof chunk)) return true;
    }
  }

  bool next(std::span<std::byte const>& message) {
    std::uint32_t length = 0;
    if (bytes.size() - begin < sizeof length) return false;
    std::memcpy(&length, bytes.data() + begin, sizeof length);
    if (bytes.size() - begin - sizeof length < length) return false;
    message = std::span(bytes).subspan(begin + sizeof length, length);
    begin += sizeof length + length;
    return true;
  }
};

inline bool send_frame(int fd, std::span<std::byte const> bytes) {
  static thread_local std::vector<std::byte> out;
  std::uint32_t const length = static_cast<std::uint32_t>(bytes.size());
  out.resize(sizeof length + bytes.size());
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, bytes.data(), bytes.size());
  return send(fd, out.data(), out.size(), MSG_NOSIGNAL) == ssize_t(out.size());
}

inline sockaddr_in address_of(std::string const& text) {  // tcp://127.0.0.1:PORT
  sockaddr_in a = {};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
  return a;
}

class epoll_links final : public links {
 public:
  epoll_links(fleet_options const& o, std::string const& address) : in_(o.children) {
    sockaddr_in const to = address_of(address);
    poll_ = epoll_create1(0);
    for (unsigned i = 0; i < o.children; ++i) {
      int const fd = socket(AF_INET, SOCK_STREAM, 0);
      int const on = 1;
      if (fd < 0 || connect(fd, reinterpret_cast<sockaddr const*>(&to), sizeof to) != 0)
        throw sluice_error(std::string("connect: ") + std::strerror(errno));
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      epoll_event e = {EPOLLIN, {.u32 = i}};
      epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &e);
      fds_.push_back(fd);
    }
  }
  bool send(unsigned child, std::span<std::byte const> bytes) override {
    return send_frame(fds_[child], bytes);
  }
  void receive(int wait_ms,
               std::function<void(unsigned, std::span<std::byte const>)> const& take) override {
    epoll_event ready[256];
    int const n = epoll_wait(poll_, ready, 256, wait_ms);
    for (int k = 0; k < n; ++k) {
      unsigned const i = ready[k].data.u32;
      if (!in_[i].read(fds_[i])) epoll_ctl(poll_, EPOLL_CTL_DEL, fds_[i], nullptr);
      for (std::span<std::byte const> m; in_[i].next(m);) take(i, m);
    }
  }

 private:
  int poll_;
  std::vector<int> fds_;
  std::vector<frame_buffer> in_;
};

/// A DEALER per child, each with a key of its own. Their descriptors only say that there may be
/// something, once: whoever sends on a socket may swallow that, so all are looked at after sends.
class zmq_links final : public links {
 public:
  zmq_links(fleet_options const& o, std::string const& address) {
    context_ = zmq_ctx_new();
    zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, static_cast<int>(o.children) + 16);
    for (unsigned i = 0; i < o.children; ++i) {
      wire::zmq_socket s(context_, ZMQ_DEALER);
      wire::set_common_options(s);
      s.set(ZMQ_IMMEDIATE, 1);
      s.set(ZMQ_RECONNECT_IVL, 1000);
      s.set(ZMQ_SNDHWM, 4);
      s.set(ZMQ_RCVHWM, 16);
      if (o.transport == "curve") {
        s.set(ZMQ_CURVE_SERVERKEY, o.server);
        s.set(ZMQ_CURVE_PUBLICKEY, o.keys[o.first + i].public_key);
        s.set(ZMQ_CURVE_SECRETKEY, o.keys[o.first + i].secret_key);
      }
      if (zmq_connect(s.get(), address.c_str()) != 0)
        throw sluice_error(std::string("connect: ") + zmq_strerror(errno));
      int fd = -1;
      std::size_t size = sizeof fd;
      zmq_getsockopt(s.get(), ZMQ_FD, &fd, &size);
      epoll_event e = {EPOLLIN | EPOLLET, {.u32 = i}};
      epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &e);
      sockets_.push_back(std::move(s));
    }
  }
  bool send(unsigned child, std::span<std::byte const> bytes) override {
    has_sent_ = true;
    return zmq_send(sockets_[child].get(), bytes.data(), bytes.size(), ZMQ_DONTWAIT) >= 0;
  }
  void receive(int wait_ms,
               std::function<void(unsigned, std::span<std::byte const>)> const& take) override {
    auto const look = [&](unsigned i) {
      for (wire::zmq_frame f; f.receive(sockets_[i].get());) take(i, f.bytes());
    };
    if (std::exchange(has_sent_, false))
      for (unsigned i = 0; i < sockets_.size(); ++i) look(i);
    epoll_event ready[256];
    int const n = epoll_wait(poll_, ready, 256, wait_ms);
    for (int k = 0; k < n; ++k) look(ready[k].data.u32);
    has_sent_ = false;  // each was looked at after its own acknowledgement
  }

 private:
  void* context_;
  std::vector<wire::zmq_socket> sockets_;
  int poll_ = epoll_create1(0);
  bool has_sent_ = false;
};

inline std::unique_ptr<links> connect_links(fleet_options const& o, std::string const& address) {
  if (o.transport == "epoll") return std::make_unique<epoll_links>(o, address);
  return std::make_unique<zmq_links>(o, address);
}

}  // namespace sluice::bench
