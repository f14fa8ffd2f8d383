// SPDX-License-Identifier: Apache-2.0
// A child of a controller that has a key, or none where none is asked for, and does not keep to
// the protocol: it claims what it does not have, replays, speaks for others and as a parent, and
// sends rubbish. test/daemon/wire/intruder.py looks at what that does to the others.
//
//   intruder ADDRESS KEYS|- NAME VICTIM COUNT     prints what it sent, by kind
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "base/error.h"
#include "wire/codec.h"
#include "wire/context.h"
#include "wire/keys.h"

namespace sluice::bench {

namespace {

using bytes = std::vector<std::byte>;

class intruder {
 public:
  intruder(void* context, char const* address, char const* keys, std::string name,
           std::string victim)
      : socket_(context, ZMQ_DEALER), name_(std::move(name)), victim_(std::move(victim)) {
    wire::set_common_options(socket_);
    socket_.set(ZMQ_SNDTIMEO, 5000);
    if (std::strcmp(keys, "-") != 0) {
      wire::security const own = wire::read_keys(keys);
      socket_.set(ZMQ_CURVE_SERVERKEY, own.parent_key);
      socket_.set(ZMQ_CURVE_PUBLICKEY, own.public_key);
      socket_.set(ZMQ_CURVE_SECRETKEY, own.secret_key);
    }
    if (zmq_connect(socket_.get(), address) != 0) throw sluice_error(zmq_strerror(zmq_errno()));
  }

  bytes made(wire::message const& m, std::uint64_t sequence) {
    bytes out;
    wire::encode({1, sequence, 0}, m, out);
    return out;
  }
  bytes made(wire::message const& m) { return made(m, ++sequence_); }
  bytes hello(std::string const& as, wire::role who) { return made(wire::hello{who, 0, as}); }

  /// Wants everything, of its own jobs and of others, and lends what it does not own.
  bytes greedy() {
    wire::report r;
    r.supplies = {wire::supply_key("metadata", "shared")};
    r.lease.child_incarnation = 1;
    r.lease.t_child = static_cast<std::int64_t>(++sequence_);
    r.lease.heard = heard_;
    r.lease.lend = true;
    lease::holding h;
    h.applied = random_() % 2 == 0 ? newest_ : lease::version{~0ull, ~0ull};
    h.held = h.lent = wire::most_rate;
    h.members = ~0u;
    r.lease.supply = {h};
    r.applied_sequence = random_() % 2 == 0 ? ~0ull : random_();
    for (char const* job : {"job", "mine"})
      for (std::uint32_t uid : {0u, 1000u}) {
        wire::stream_report s;
        s.job = wire::job_key(uid, job);
        s.served = wire::most_rate;
        s.waiting = wire::most_rate;
        s.waiters = ~0u;
        s.blocked_ppm = 1'000'000;
        s.nodes = ~0u;
        r.streams.push_back(s);
      }
    return made(r);
  }
  bytes as_parent() {
    switch (random_() % 3) {
      case 0:
        return made(wire::grant{});
      case 1:
        return made(wire::policy_part{1, 2, 0, "{}"});
      default:
        return made(wire::restart{});
    }
  }
  bytes rubbish() {
    bytes b = random_() % 2 == 0 ? greedy() : bytes(1 + random_() % 2000);
    for (unsigned n = 1 + static_cast<unsigned>(random_() % 64); n > 0; --n)
      b[random_() % b.size()] = static_cast<std::byte>(random_());
    if (random_() % 4 == 0) b.resize(random_() % b.size());
    return b;
  }

  bool send(bytes const& b) {
    hear();
    return zmq_send(socket_.get(), b.data(), b.size(), 0) >= 0;
  }

  void run(unsigned count) {
    struct kind {
      char const* name;
      std::function<bytes()> make;
    };
    bytes const mine = hello(name_, wire::role::node);
    kind const kinds[] = {
        {"greedy", [&] { return greedy(); }},
        {"replayed", [&] { return mine; }},
        {"for another", [&] { return hello(victim_, wire::role::node); }},
        {"as a relay", [&] { return hello(name_, wire::role::relay); }},
        {"as a parent", [&] { return as_parent(); }},
        {"rubbish", [&] { return rubbish(); }},
    };
    send(mine);
    unsigned const each = count / static_cast<unsigned>(std::size(kinds)) + 1;
    for (kind const& k : kinds) {
      unsigned sent = 0;
      for (unsigned i = 0; i < each; ++i, usleep(300)) sent += send(k.make());
      fmt::print("{} {}\n", k.name, sent);
      std::fflush(stdout);
    }
  }

 private:
  /// What the controller says is used for lies that it must believe to be fresh.
  void hear() {
    for (wire::zmq_frame f; f.receive(socket_.get());) {
      wire::decoded d = wire::decode(f.bytes());
      if (d.refused != nullptr) continue;
      if (auto const* g = std::get_if<wire::grant>(&d.body)) {
        heard_ = {g->lease.parent_incarnation, g->lease.t_parent};
        if (!g->lease.supply.empty()) newest_ = g->lease.supply[0].ver;
      }
    }
  }

  wire::zmq_socket socket_;
  std::string name_, victim_;
  std::uint64_t sequence_ = 0;
  lease::echo heard_;
  lease::version newest_;
  std::mt19937_64 random_{1};
};

}  // namespace

}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: intruder ADDRESS KEYS|- NAME VICTIM COUNT\n");
    return 2;
  }
  void* const context = zmq_ctx_new();
  int status = 0;
  try {
    sluice::bench::intruder(context, argv[1], argv[2], argv[3], argv[4])
        .run(static_cast<unsigned>(std::atoi(argv[5])));
  } catch (std::exception const& e) {
    fmt::print(stderr, "intruder: {}\n", e.what());
    status = 1;
  }
  zmq_ctx_term(context);
  return status;
}
