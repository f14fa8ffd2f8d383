// SPDX-License-Identifier: Apache-2.0
// Keys decide: strangers are not heard, nobody speaks for another, a list that changes is obeyed,
// and a parent that cannot judge does not serve.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "wire/socket.h"
#include "wire_peers.h"
#include "wire_random.h"

using namespace sluice;
using namespace sluice::test;
using Catch::Contains;

namespace {

constexpr char anywhere[] = "tcp://127.0.0.1:*";
constexpr wire::child_options soon{.retry_first_ns = 100'000'000, .retry_most_ns = 200'000'000};

struct house {
  keyring keys;
  wire::security n1 = keys.child("n1"), n2 = keys.child("n2");
  std::unique_ptr<wire::context> context = wire::make_context();
  std::unique_ptr<wire::parent_socket> parent;

  house() { open({{n1, wire::role::node}, {n2, wire::role::node}}); }
  explicit house(std::vector<std::pair<wire::security, wire::role>> const& allowed) {
    open(allowed);
  }
  void open(std::vector<std::pair<wire::security, wire::role>> const& allowed) {
    auto const own = keys.parent(allowed);
    parent = wire::parent_socket::bind(*context, anywhere, &own, 100);
  }
  std::unique_ptr<wire::child_socket> child(wire::security const& with,
                                            std::uint64_t incarnation = 1) {
    return wire::child_socket::make(*context, {parent->address()}, &with, incarnation, soon);
  }
};

/// What becomes of a connection attempt with these keys; null: without any.
unsigned outcome(house& h, wire::security const* with) {
  auto& c = dynamic_cast<wire::zmq_context&>(*h.context);
  wire::zmq_socket socket(c.get(), ZMQ_DEALER);
  if (with != nullptr) {
    socket.set(ZMQ_CURVE_SERVERKEY, with->parent_key);
    socket.set(ZMQ_CURVE_PUBLICKEY, with->public_key);
    socket.set(ZMQ_CURVE_SECRETKEY, with->secret_key);
  }
  wire::monitor watch(c, socket);
  zmq_connect(socket.get(), h.parent->address().c_str());
  zmq_send(socket.get(), "hello", 5, ZMQ_DONTWAIT);
  unsigned result = 0;
  until([&] {
    CHECK_FALSE(h.parent->receive());
    while (auto e = watch.next())
      if (result == 0 && e->what != ZMQ_EVENT_CONNECTED) result = e->what;
    return result != 0;
  });
  return result;
}

class tcp_peer {
 public:
  explicit tcp_peer(std::string const& address) : fd_(connected_to(address)) {
    timeval const wait{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  }
  ~tcp_peer() { close(fd_); }
  tcp_peer(tcp_peer const&) = delete;
  tcp_peer& operator=(tcp_peer const&) = delete;
  bool write(std::string const& text) {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// True once the other side has hung up.
  bool is_closed() {
    char at[4096];
    for (;;) {
      ssize_t const n = ::recv(fd_, at, sizeof at, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return true;
      if (n < 0) return false;
    }
  }

 private:
  int fd_;
};

std::string greeting(char const* mechanism) {
  std::string g = std::string("\xff") + std::string(8, '\0') + "\x7f\x03" + std::string(1, '\0');
  std::string name = mechanism;
  name.resize(20);
  return g + name + std::string(32, '\0');
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("wire keys: a known key is heard, under the name of its key", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  auto const got = say(*child, *h.parent, hello_of("n1"));
  REQUIRE(got);
  CHECK(got->name == "n1");
  CHECK(h.parent->send(got->child, wire::grant{}, 1));
  CHECK(hear(*child, *h.parent));
}

TEST_CASE("wire keys: strangers are not heard", "[wire][keys]") {
  house h;
  auto const unknown = h.keys.child("n9");
  auto wrong = h.n1;
  wrong.parent_key = wire::new_key_pair().public_key;
  CHECK(outcome(h, nullptr) != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  CHECK(outcome(h, &unknown) == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
  CHECK(outcome(h, &wrong) != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  CHECK(outcome(h, &h.n1) == ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  std::string complaints;
  for (std::string line; !(line = h.parent->complaint()).empty();) complaints += line + "\n";
  CHECK_THAT(complaints, Contains(wire::hex(unknown.public_key)));
  CHECK(h.parent->counts().refused_unknown_key >= 1);
}

TEST_CASE("wire keys: a child says what is wrong with its keys", "[wire][keys]") {
  house h;
  auto const told = [&](wire::security const& with) {
    auto const child = h.child(with);
    std::string line;
    until([&] {
      line = child->maintain(sluice::boot_ns());
      return !line.empty();
    });
    CHECK_FALSE(child->is_connected());
    return line;
  };
  CHECK_THAT(told(h.keys.child("n9")),
             Contains("does not allow our key") &&
                 Contains("keys allow --dir ITS-KEYS n9 PUBLICFILE, then reload"));
  auto wrong = h.n1;
  wrong.parent_key = wire::new_key_pair().public_key;
  CHECK_THAT(told(wrong), Contains("parent.pub"));
  auto none = h.n1;
  none.parent_key = {};
  none.dir = "/etc/sluice/keys-cluster";
  CHECK_THROWS_WITH(h.child(none), Contains("/etc/sluice/keys-cluster/parent.pub"));
}

TEST_CASE("wire keys: a key that is added later joins by itself", "[wire][keys]") {
  house h;
  auto const late = h.keys.child("late");
  auto const child = h.child(late);
  REQUIRE(until([&] { return !child->maintain(sluice::boot_ns()).empty(); }));
  auto const list = h.keys.parent({{late, wire::role::node}});
  h.parent->reload(&list);
  auto const got = say(*child, *h.parent, hello_of("late"));
  REQUIRE(got);
  CHECK(got->name == "late");
}

TEST_CASE("wire keys: of two processes with one key the older is told each time", "[wire][keys]") {
  house h;
  auto const own = h.keys.parent({{h.n1, wire::role::node}});
  h.parent = wire::parent_socket::bind(*h.context, anywhere, &own, 100, {.most_faults = 3});
  auto const old = h.child(h.n1, 1), fresh = h.child(h.n1, 2);
  REQUIRE(say(*old, *h.parent, hello_of("n1")));
  REQUIRE(say(*fresh, *h.parent, hello_of("n1")));
  for (int i = 0; i < 6; ++i) {
    REQUIRE(until([&] { return old->send(hello_of("n1"), 1); }));
    auto const refused = hear(*old, *h.parent);
    REQUIRE(refused);
    CHECK(std::get<wire::error>(*refused).code == wire::fault::displaced);
  }
  CHECK_THAT(h.parent->complaint(), Contains("is its key on two machines?"));
  // The newer one is not ignored for it.
  CHECK(h.parent->counts().refused_flood == 0);
  CHECK(say(*fresh, *h.parent, wire::report{}));
}

TEST_CASE("wire keys: nobody speaks for another", "[wire][keys]") {
  house h;
  auto const honest = h.child(h.n1);
  auto const liar = h.child(h.n2, 99);
  auto const first = say(*honest, *h.parent, hello_of("n1"));
  REQUIRE(first);
  REQUIRE(until([&] { return liar->send(hello_of("n1"), 1); }));
  auto const answer = hear(*liar, *h.parent);
  REQUIRE(answer);
  CHECK(std::get<wire::error>(*answer).code == wire::fault::not_allowed);
  CHECK(std::get<wire::error>(*answer).text ==
        "you say n1, the key is n2: start with --name n2, or allow the key as n1");
  CHECK(h.parent->counts().refused_name == 1);
  REQUIRE(until(
      [&] { return liar->send(hello_of("n2", wire::role::relay), 1); }));  // nor for another role
  REQUIRE(until([&] {
    h.parent->receive();
    return h.parent->counts().refused_name == 2;
  }));
  REQUIRE(h.parent->send(first->child, wire::grant{}, 1));
  auto const grant = hear(*honest, *h.parent);
  REQUIRE(grant);
  CHECK(std::holds_alternative<wire::grant>(*grant));
}

TEST_CASE("wire keys: only nodes and relays are children", "[wire][keys]") {
  keyring keys;
  auto const other = keys.child("boss");
  house h;
  auto with = h.keys.child("boss");
  auto const list = h.keys.parent({{with, wire::role::cluster}});
  h.parent->reload(&list);
  auto const child = h.child(with);
  REQUIRE(until([&] { return child->send(hello_of("boss", wire::role::cluster), 1); }));
  REQUIRE(until([&] {
    CHECK_FALSE(h.parent->receive());
    return h.parent->counts().refused_role == 1;
  }));
}

TEST_CASE("wire keys: a revoked key is not heard, though connected", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  auto const got = say(*child, *h.parent, hello_of("n1"));
  REQUIRE(got);
  auto const renewed = h.keys.child("n1");  // the same name, another key
  auto const list = h.keys.parent({{renewed, wire::role::node}});
  h.parent->reload(&list);
  CHECK_FALSE(h.parent->send(got->child, wire::grant{}, 1));
  REQUIRE(until([&] { return child->send(wire::report{}, 1); }));
  REQUIRE(until([&] {
    CHECK_FALSE(h.parent->receive());
    return h.parent->counts().refused_unknown_key == 1;
  }));
  auto const fresh = h.child(renewed, 2);
  auto const again = say(*fresh, *h.parent, hello_of("n1"));
  REQUIRE(again);
  CHECK(again->child == got->child);
}

TEST_CASE("wire keys: a parent whose keys nobody judges does not start", "[wire][keys]") {
  keyring keys;
  auto const own = keys.parent({});
  auto const context = wire::make_context({.judge = false});
  CHECK_THROWS_WITH(wire::parent_socket::bind(*context, anywhere, &own, 1), Contains("not judged"));
  auto const stopped = wire::make_context();
  stopped->stop_judging();
  CHECK_THROWS_AS(wire::parent_socket::bind(*stopped, anywhere, &own, 1), sluice::error);
}

TEST_CASE("wire keys: when the judge dies, nobody else is let in", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  REQUIRE(say(*child, *h.parent, hello_of("n1")));
  h.context->stop_judging();
  auto const unknown = h.keys.child("n9");
  CHECK(outcome(h, &unknown) != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  CHECK(say(*child, *h.parent, wire::report{}));
}

TEST_CASE("wire keys: a huge frame before the handshake is not kept", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  REQUIRE(say(*child, *h.parent, hello_of("n1")));
  std::size_t const before = resident_bytes();
  for (unsigned char flags : {'\x02', '\x06'}) {  // a long message, a long command
    tcp_peer peer(h.parent->address());
    peer.write(greeting("CURVE"));
    std::string frame(1, static_cast<char>(flags));
    frame += std::string("\0\0\0\1\0\0\0\0", 8);  // 4 GiB
    peer.write(frame);
    std::string const data(1 << 20, 'x');
    for (int i = 0; i < 64 && peer.write(data); ++i) {
    }
    CHECK(until([&] { return peer.is_closed(); }));
  }
  CHECK(resident_bytes() < before + (16u << 20));
  CHECK(say(*child, *h.parent, wire::report{}));
}

TEST_CASE("wire keys: silent connections keep nobody out", "[wire][keys]") {
  house h;
  std::vector<std::unique_ptr<tcp_peer>> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(std::make_unique<tcp_peer>(h.parent->address()));
    if (i % 2 == 0) silent.back()->write(greeting("CURVE"));
  }
  auto const child = h.child(h.n1);
  CHECK(say(*child, *h.parent, hello_of("n1")));
}

TEST_CASE("wire keys: 10000 pieces of rubbish without a key harm nobody", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  REQUIRE(say(*child, *h.parent, hello_of("n1")));
  std::mt19937_64 random(6);
  auto peer = std::make_unique<tcp_peer>(h.parent->address());
  unsigned pieces = 0, connections = 1, heard = 0;
  REQUIRE(until([&] {
    for (int i = 0; i < 100 && pieces < 10000; ++i, ++pieces) {
      if (pieces % 50 == 0) {
        peer = std::make_unique<tcp_peer>(h.parent->address());
        ++connections;
        if (connections % 2 == 0) peer->write(greeting(connections % 4 == 0 ? "NULL" : "CURVE"));
      }
      std::string frame(random() % 100 + 2, '\0');
      for (char& c : frame) c = static_cast<char>(random());
      frame[0] = pieces % 3 == 0 ? '\4' : '\0';  // a short command, or a short message
      frame[1] = static_cast<char>(frame.size() - 2);
      peer->write(frame);
    }
    child->send(wire::report{}, 1);
    while (auto in = h.parent->receive()) {
      CHECK(*in->name == "n1");
      ++heard;
    }
    return pieces == 10000 && heard > 50;
  }));
  CHECK(connections > 100);
  CHECK(h.parent->counts().refused_malformed == 0);  // none of it came that far
}

TEST_CASE("wire keys: 10000 pieces of rubbish with a key harm nobody else", "[wire][keys]") {
  house h;
  auto const child = h.child(h.n1);
  REQUIRE(say(*child, *h.parent, hello_of("n1")));
  wire::zmq_socket bad(dynamic_cast<wire::zmq_context&>(*h.context).get(), ZMQ_DEALER);
  bad.set(ZMQ_CURVE_SERVERKEY, h.n2.parent_key);
  bad.set(ZMQ_CURVE_PUBLICKEY, h.n2.public_key);
  bad.set(ZMQ_CURVE_SECRETKEY, h.n2.secret_key);
  REQUIRE(zmq_connect(bad.get(), h.parent->address().c_str()) == 0);
  std::mt19937_64 random(7);
  unsigned pieces = 0, heard = 0;
  REQUIRE(until([&] {
    for (int i = 0; i < 100 && pieces < 10000; ++i) {
      bytes rubbish(random() % 300);
      for (auto& b : rubbish) b = static_cast<std::byte>(random());
      if (pieces % 2 == 0)
        rubbish = encoded({1, random(), 1}, random_message(random() % 9, random));
      pieces += zmq_send(bad.get(), rubbish.data(), rubbish.size(), ZMQ_DONTWAIT) >= 0;
    }
    child->send(wire::report{}, 1);
    for (int i = 0; i < 200; ++i)
      if (auto in = h.parent->receive()) heard += *in->name == "n1";
    return heard > 50 && pieces == 10000 && h.parent->counts().refused_flood > 9000;
  }));
  CHECK(h.parent->counts(0).refused_malformed + h.parent->counts(0).refused_flood == 0);
}
