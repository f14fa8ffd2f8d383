// SPDX-License-Identifier: Apache-2.0
// How many connections each of those has who ask over HTTP, and who they are.
#include "runtime/http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/descriptor.h"

using namespace sluice;
using runtime::http_peer;
using runtime::peer_places;

TEST_CASE("http peer: few peers do not take all places") {
  peer_places places(64);
  auto const peer = [](int uid) { return http_peer{"uid " + std::to_string(uid)}; };
  auto const taken_by = [&](int uid) {
    std::size_t n = 0;
    while (n < 100 && places.enter(peer(uid))) ++n;
    return n;
  };
  CHECK(taken_by(1) == peer_places::most_of_one);
  CHECK(taken_by(1) == 0);
  CHECK(taken_by(2) == peer_places::most_of_one);
  CHECK(taken_by(3) == 8);
  CHECK(taken_by(4) == 8);
  CHECK(taken_by(5) == 1);  // half of all are taken
  CHECK(taken_by(6) == 1);
  CHECK(places.enter({"uid 0", true}));
  CHECK(places.enter({"uid 0", true}));
  for (int i = 0; i < 8; ++i) places.leave(peer(1));
  places.leave(peer(1));  // it has none
  CHECK(places.enter(peer(5)));
}

TEST_CASE("http peer: the kernel says whose the other end is") {
  descriptor const listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const as = reinterpret_cast<sockaddr*>(&at);
  REQUIRE(bind(listener.get(), as, size) == 0);
  REQUIRE(listen(listener.get(), 4) == 0);
  REQUIRE(getsockname(listener.get(), as, &size) == 0);
  descriptor far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(far.get(), as, size) == 0);
  descriptor const near(accept(listener.get(), nullptr, nullptr));
  auto const who = runtime::peer_of(near.get(), {});
  REQUIRE(who.has_value());
  CHECK(who->name == "uid " + std::to_string(geteuid()));
  CHECK(who->is_operator);
  auto const other = runtime::peer_of(near.get(), [](uid_t uid) { return uid + 7; });
  REQUIRE(other.has_value());
  CHECK(other->name == "uid " + std::to_string(geteuid() + 7));
  CHECK(other->is_operator);  // by the uid itself
  far = descriptor();
  CHECK_FALSE(runtime::peer_of(-1, {}).has_value());
}
