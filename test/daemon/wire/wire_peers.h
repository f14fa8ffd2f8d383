// SPDX-License-Identifier: Apache-2.0
// A parent and its children over 127.0.0.1, driven by one thread: patience instead of sleeps.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <zmq.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>

#include "base/clock.h"
#include "wire/context.h"
#include "wire/socket.h"

namespace sluice::test {

inline constexpr int patience_s = 20;

/// Runs `step` until it is true. False: it never was.
inline bool until(std::function<bool()> const& step, double seconds = patience_s) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (step()) return true;
    zmq_poll(nullptr, 0, 2);
  }
  return false;
}

/// The keys of a parent and of children, as read_keys() would give them.
struct keyring {
  wire::key_pair parent_pair = wire::new_key_pair();

  wire::security parent(std::vector<std::pair<wire::security, wire::role>> const& children) const {
    wire::security s;
    s.name = "top";
    s.public_key = parent_pair.public_key;
    s.secret_key = parent_pair.secret_key;
    for (auto const& [child, who] : children) s.allowed[child.public_key] = {child.name, who};
    return s;
  }
  wire::security child(std::string const& name) const {
    wire::key_pair const own = wire::new_key_pair();
    wire::security s;
    s.name = name;
    s.public_key = own.public_key;
    s.secret_key = own.secret_key;
    s.parent_key = parent_pair.public_key;
    return s;
  }
};

struct heard {
  std::string name;
  wire::message body;
  std::uint32_t child;
};

/// Sends `m` until the connection is there, then waits until the parent hears something.
inline std::optional<heard> say(wire::child_socket& child, wire::parent_socket& parent,
                                wire::message const& m, double seconds = patience_s) {
  bool sent = false;
  std::optional<heard> got;
  until(
      [&] {
        child.maintain(sluice::boot_ns());
        if (!sent) sent = child.send(m, 1);
        if (auto in = parent.receive()) got = heard{*in->name, std::move(in->body), in->child};
        return got.has_value();
      },
      seconds);
  return got;
}

/// What the child hears next.
inline std::optional<wire::message> hear(wire::child_socket& child, wire::parent_socket& parent,
                                         double seconds = patience_s) {
  std::optional<wire::message> got;
  until(
      [&] {
        child.maintain(sluice::boot_ns());
        parent.receive();
        if (auto in = child.receive()) got = std::move(in->second);
        return got.has_value();
      },
      seconds);
  return got;
}

inline wire::hello hello_of(std::string const& name, wire::role who = wire::role::node) {
  return {who, 0, name};
}

/// A TCP connection to the port of an address, on this machine; the caller closes it.
inline int connected_to(std::string const& address) {
  int const fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

}  // namespace sluice::test
