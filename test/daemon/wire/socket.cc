// SPDX-License-Identifier: Apache-2.0
// Parent and child without keys: who is heard, who is told to say hello, who takes a name over,
// and that rubbish from one peer does not keep the others from being heard.
#include "wire/socket.h"
#include "base/clock.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "wire_peers.h"
#include "wire_random.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr char anywhere[] = "tcp://127.0.0.1:*";

struct pair_of {
  std::unique_ptr<wire::context> context = wire::make_context();
  std::unique_ptr<wire::parent_socket> parent;
  explicit pair_of(wire::parent_options const& options = {})
      : parent(wire::parent_socket::bind(*context, anywhere, nullptr, 100, options)) {}
  std::unique_ptr<wire::child_socket> child(std::uint64_t incarnation = 1) {
    return wire::child_socket::make(*context, {parent->address()}, nullptr, incarnation);
  }
};

/// A peer that speaks ZeroMQ and nothing else.
struct raw_peer {
  wire::zmq_socket socket;
  raw_peer(wire::context& c, std::string const& address)
      : socket(dynamic_cast<wire::zmq_context&>(c).get(), ZMQ_DEALER) {
    REQUIRE(zmq_connect(socket.get(), address.c_str()) == 0);
  }
  bool send(bytes const& b) {
    return zmq_send(socket.get(), b.data(), b.size(), ZMQ_DONTWAIT) >= 0;
  }
};

/// A connection that is reset at its end.
class short_peer {
 public:
  explicit short_peer(std::string const& address) : fd_(connected_to(address)) {}
  ~short_peer() {
    linger const at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd_);
  }
  short_peer(short_peer const&) = delete;
  short_peer& operator=(short_peer const&) = delete;
  void write(std::string const& text) const {
    REQUIRE(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }

 private:
  int fd_;
};

/// Greeting and READY of a DEALER without keys.
std::string introduction() {
  using namespace std::string_literals;
  return "\xff"s + std::string(8, '\0') + "\x7f\x03\x01"s + "NULL"s + std::string(48, '\0') +
         "\x04\x1c\x05READY"s + "\x0bSocket-Type"s + "\0\0\0\x06"s + "DEALER"s;
}

}  // namespace

TEST_CASE("wire: hello, report, grant over loopback without keys", "[wire]") {
  pair_of two;
  auto const child = two.child();
  auto const first = say(*child, *two.parent, hello_of("n1"));
  REQUIRE(first);
  CHECK(first->name == "n1");
  CHECK(std::get<wire::hello>(first->body).name == "n1");
  CHECK(child->is_connected());
  REQUIRE(two.parent->send(first->child, wire::welcome{}, 5));
  auto const welcome = hear(*child, *two.parent);
  REQUIRE(welcome);
  CHECK(std::holds_alternative<wire::welcome>(*welcome));
  auto const second = say(*child, *two.parent, wire::report{});
  REQUIRE(second);
  CHECK(second->child == first->child);
  CHECK(std::holds_alternative<wire::report>(second->body));
}

TEST_CASE("wire: who has not said hello is told to", "[wire]") {
  pair_of two;
  auto const child = two.child();
  REQUIRE(until([&] { return child->send(wire::report{}, 1); }));
  auto const answer = hear(*child, *two.parent);
  REQUIRE(answer);
  CHECK(std::holds_alternative<wire::restart>(*answer));
  CHECK(say(*child, *two.parent, hello_of("n1")));
  two.parent->drop(0);
  CHECK_FALSE(two.parent->send(0, wire::welcome{}, 1));
  REQUIRE(until([&] { return child->send(wire::report{}, 1); }));
  auto const again = hear(*child, *two.parent);
  REQUIRE(again);
  CHECK(std::holds_alternative<wire::restart>(*again));
}

TEST_CASE("wire: what is too long for a role does not leave, and a line says so", "[wire]") {
  wire::role const who = GENERATE(wire::role::node, wire::role::relay);
  pair_of two;
  auto const child = two.child();
  REQUIRE(say(*child, *two.parent, hello_of("n1", who)));
  wire::job_list l;
  l.jobs.resize((who == wire::role::node ? wire::most_bytes_node : wire::most_bytes) / 136 + 1);
  CHECK_FALSE(child->send(l, 1));
  std::string line;
  until([&] { return (line = child->maintain(boot_ns())).starts_with("not sent"); });
  CHECK(line.find("a message of ") != std::string::npos);
  CHECK_FALSE(child->send(l, 1));
  CHECK(child->maintain(boot_ns()).empty());  // once a minute
  l.jobs.resize(1);
  CHECK(say(*child, *two.parent, l));
}

TEST_CASE("wire: a name belongs to its newest process", "[wire]") {
  pair_of two;
  auto const old = two.child(1);
  auto const fresh = two.child(2);
  auto const a = say(*old, *two.parent, hello_of("n1"));
  auto const b = say(*fresh, *two.parent, hello_of("n1"));
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a->child == b->child);
  REQUIRE(until([&] { return old->send(wire::report{}, 1); }));
  auto const told = hear(*old, *two.parent);
  REQUIRE(told);
  CHECK(std::holds_alternative<wire::restart>(*told));
  REQUIRE(until([&] { return old->send(hello_of("n1"), 1); }));
  auto const refused = hear(*old, *two.parent);
  REQUIRE(refused);
  REQUIRE(std::holds_alternative<wire::error>(*refused));
  // Without keys the newer one may be anybody: the older one gives up nothing for it.
  CHECK(std::get<wire::error>(*refused).code == wire::fault::not_allowed);
  CHECK(two.parent->counts().refused_name == 1);
  auto const still = say(*fresh, *two.parent, wire::report{});
  REQUIRE(still);
  CHECK(std::holds_alternative<wire::report>(still->body));
}

TEST_CASE("wire: an older process gets a name whose owner is silent", "[wire]") {
  pair_of two({.silent_ns = 50'000'000});
  auto const fresh = two.child(2);
  REQUIRE(say(*fresh, *two.parent, hello_of("n1")));
  auto const old = two.child(1);
  REQUIRE(until([&] { return old->send(hello_of("n1"), 1); }));
  CHECK(until([&] {
    old->send(hello_of("n1"), 1);
    zmq_poll(nullptr, 0, 20);
    return two.parent->receive().has_value();
  }));
}

TEST_CASE("wire: replayed and wrong-way messages are dropped and counted", "[wire]") {
  pair_of two;
  raw_peer peer(*two.context, two.parent->address());
  peer.send(encoded({7, 10, 1}, hello_of("n1")));
  std::optional<std::uint32_t> child;
  REQUIRE(until([&] {
    if (auto in = two.parent->receive()) child = in->child;
    return child.has_value();
  }));
  peer.send(encoded({7, 11, 1}, wire::report{}));
  peer.send(encoded({7, 11, 1}, wire::report{}));  // again
  peer.send(encoded({7, 9, 1}, wire::report{}));   // from before
  peer.send(encoded({6, 99, 1}, wire::report{}));  // of another process
  peer.send(encoded({7, 12, 1}, wire::grant{}));   // not a child's to send
  peer.send(encoded({7, 13, 1}, wire::bye{}));
  int reports = 0;
  bool left = false;
  REQUIRE(until([&] {
    while (auto in = two.parent->receive()) {
      reports += std::holds_alternative<wire::report>(in->body);
      left = left || std::holds_alternative<wire::bye>(in->body);
    }
    return left;
  }));
  CHECK(reports == 1);
  CHECK(two.parent->counts(*child).refused_replay == 3);
  CHECK(two.parent->counts(*child).refused_role == 1);
}

TEST_CASE("wire: 10000 pieces of rubbish keep nobody from being heard", "[wire]") {
  pair_of two;
  auto const child = two.child();
  REQUIRE(say(*child, *two.parent, hello_of("good")));
  raw_peer peer(*two.context, two.parent->address());
  peer.send(encoded({7, 10, 1}, hello_of("bad")));
  std::mt19937_64 random(5);
  unsigned sent = 0, heard = 0, flood = 0;
  REQUIRE(until([&] {
    for (int i = 0; i < 100 && flood < 10000; ++i) {
      bytes rubbish(random() % 300);
      for (auto& b : rubbish) b = static_cast<std::byte>(random());
      flood += peer.send(rubbish);
    }
    sent += child->send(wire::report{}, 1);
    for (int i = 0; i < 200; ++i)
      if (auto in = two.parent->receive())
        heard += *in->name == "good" && std::holds_alternative<wire::report>(in->body);
    return flood == 10000 && heard > 50 && two.parent->counts().refused_malformed > 0 &&
           two.parent->counts().refused_malformed + two.parent->counts().refused_flood >= 10000;
  }));
  CHECK(heard <= sent);
  CHECK(two.parent->counts(0).refused_malformed == 0);
  CHECK(two.parent->counts(1).refused_malformed == 101);  // then it was not heard any more
  CHECK(two.parent->counts(1).refused_flood >= 9000);
  CHECK_FALSE(two.parent->complaint().empty());
}

TEST_CASE("wire: a child that says too much is heard in part, the others whole", "[wire]") {
  pair_of two({.terms = {.most_ahead_ns = 1}});
  auto const child = two.child();
  raw_peer peer(*two.context, two.parent->address());
  REQUIRE(peer.send(encoded({7, 10, 1}, hello_of("loud"))));
  REQUIRE(until([&] { return two.parent->receive().has_value(); }));
  wire::gate_join long_one;
  long_one.jobs.resize(wire::most_bytes_node / 33);
  std::uint64_t sequence = 10;
  unsigned heard = 0;
  REQUIRE(until([&] {
    for (int i = 0; i < 20; ++i) peer.send(encoded({7, ++sequence, 1}, long_one));
    while (auto in = two.parent->receive()) heard += *in->name == "loud";
    return heard > 1 && two.parent->counts().refused_excess > 100;
  }));
  CHECK(two.parent->counts(0).refused_malformed + two.parent->counts(0).refused_flood == 0);
  CHECK(two.parent->complaint() ==
        "loud: says more than a child may, what is beyond it is dropped");
  REQUIRE(until([&] { return child->send(hello_of("good"), 1); }));
  CHECK(until([&] {
    auto const in = two.parent->receive();
    return in && *in->name == "good";
  }));
}

TEST_CASE("wire: a child that floods, pings and is gone does not end its parent", "[wire]") {
  pair_of two;
  std::vector<std::unique_ptr<wire::child_socket>> others;
  // One thread reads all connections: it has been past what came before one that is there now.
  auto const is_read = [&] {
    others.push_back(two.child(others.size() + 1));
    others.back()->send(wire::report{}, 1);
    return until([&] {
      others.back()->maintain(boot_ns());
      return others.back()->is_connected();
    });
  };
  {
    short_peer const peer(two.parent->address());
    peer.write(introduction());
    REQUIRE(is_read());
    std::string all;
    for (int i = 0; i < 4200; ++i) all += std::string("\0\1x", 3);
    peer.write(all + std::string("\x04\x07\x04PING\0\0", 9));
    REQUIRE(is_read());
  }
  REQUIRE(is_read());
  REQUIRE(until([&] {
    CHECK_FALSE(two.parent->receive());
    return two.parent->counts().refused_malformed == 4200;
  }));
  CHECK(say(*others.back(), *two.parent, hello_of("n1")));
}

TEST_CASE("wire: a muted child is heard again after a while", "[wire]") {
  pair_of two({.most_faults = 3, .mute_ns = 200'000'000});
  raw_peer peer(*two.context, two.parent->address());
  peer.send(encoded({7, 1, 1}, hello_of("n1")));
  for (int i = 0; i < 10; ++i) peer.send(bytes(7));
  std::uint64_t sequence = 2;
  int reports = 0;
  CHECK(until([&] {
    peer.send(encoded({7, ++sequence, 1}, wire::report{}));
    while (auto in = two.parent->receive())
      reports += std::holds_alternative<wire::report>(in->body);
    return reports > 2;
  }));
  CHECK(two.parent->counts(0).refused_flood > 0);
}

TEST_CASE("wire: one hundred children, each its own number", "[wire]") {
  pair_of two;
  std::vector<std::unique_ptr<wire::child_socket>> children;
  for (unsigned i = 0; i < 100; ++i) children.push_back(two.child(i + 1));
  std::vector<bool> said(100), known(100);
  unsigned count = 0;
  REQUIRE(until([&] {
    for (unsigned i = 0; i < 100; ++i)
      if (!said[i]) said[i] = children[i]->send(hello_of("n" + std::to_string(i)), 1);
    while (auto in = two.parent->receive()) {
      REQUIRE(in->child < 100);
      CHECK_FALSE(known[in->child]);
      known[in->child] = true;
      ++count;
    }
    return count == 100;
  }));
}

TEST_CASE("wire: a restarted parent is found again, the next address when asked", "[wire]") {
  pair_of two;
  auto second = wire::parent_socket::bind(*two.context, anywhere, nullptr, 200);
  auto const child = wire::child_socket::make(
      *two.context, {two.parent->address(), second->address()}, nullptr, 1);
  REQUIRE(say(*child, *two.parent, hello_of("n1")));
  child->next();
  CHECK(child->address() == second->address());
  REQUIRE(say(*child, *second, hello_of("n1")));
  std::string const address = second->address();
  second.reset();
  // A listener is closed behind one's back, some time after its socket: until then the child may
  // find it once more. Then nothing is kept for later.
  REQUIRE(until([&] {
    child->maintain(sluice::boot_ns());
    return !child->is_connected() && !child->send(wire::report{}, 1);
  }));
  REQUIRE(until([&] {
    try {
      second = wire::parent_socket::bind(*two.context, address, nullptr, 300);
    } catch (sluice::error const&) {
    }
    return second != nullptr;
  }));
  CHECK(say(*child, *second, hello_of("n1")));
}

TEST_CASE("wire: without keys nothing leaves the machine", "[wire]") {
  auto const context = wire::make_context();
  for (char const* address :
       {"tcp://0.0.0.0:*", "tcp://*:*", "tcp://192.0.2.1:7421", "tcp://[::]:*"})
    CHECK_THROWS_AS(wire::parent_socket::bind(*context, address, nullptr, 1), sluice::error);
  CHECK_THROWS_AS(wire::child_socket::make(*context, {"tcp://ctl:7421"}, nullptr, 1),
                  sluice::error);
  CHECK_THROWS_AS(wire::parent_socket::bind(*context, "nonsense", nullptr, 1), sluice::error);
  auto const first = wire::parent_socket::bind(*context, anywhere, nullptr, 1);
  CHECK_THROWS_WITH(wire::parent_socket::bind(*context, first->address(), nullptr, 1),
                    Catch::Contains("in use"));
}
