// SPDX-License-Identifier: Apache-2.0
// Nodes that write, sync, crash and are cut off; a controller that is started again from what it
// had kept; messages that are lost and late, and questions that are asked again. Each node has a
// count of what it wrote and of what of that is durable. Whenever a gate opens, what was written
// before it was asked is durable.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "gate_desk.h"
#include "lib/seeds.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct model {
  struct node {
    std::uint64_t incarnation = 1, boot = 1, met = 1;  // met: at the other end of its connection
    bool has_job = false, is_known = false, is_cut = false;
    unsigned written = 0, durable = 0, at_crash = 0;
    bool has_hole = false;  // a crash took something, and no gate was told of it yet
  };
  struct mail {
    std::uint32_t child;
    bool up;
    wire::message m;
    std::uint64_t incarnation;
  };

  // The last two nodes may be below a relay, whose connection is like a node's.
  static constexpr std::uint32_t first_below = 2, relay_edge = 4;

  std::mt19937_64 random;
  gate_book book{false, 5, 0}, relay{true, 6, 0};
  struct memory {
    std::string whole, changes = {};
    void put(gate_book& b, bool all) {
      if (all)
        *this = {b.to_text()};
      else
        changes += b.changes();
      b.kept();
    }
    void recall(gate_book& b) const {
      b.from_text(whole);
      b.replay(changes, true);
    }
  };
  memory kept, relay_kept;
  std::int64_t now = 0;
  std::vector<node> nodes = std::vector<node>(5);
  std::vector<mail> on_the_way;
  std::map<std::uint64_t, std::vector<unsigned>> asked;  // gate -> what was written when it was
  std::uint64_t gates = 0, opened = 0, refused = 0;

  bool has_relay;

  model(std::uint64_t seed, bool relay_too) : random(seed), has_relay(relay_too) {
    kept.put(book, true);
    relay_kept.put(relay, true);
  }

  bool is_below(std::uint32_t c) const { return has_relay && c >= first_below && c != relay_edge; }
  gate_book& parent_of(std::uint32_t c) { return is_below(c) ? relay : book; }

  bool one_in(unsigned n) { return random() % n == 0; }

  void up(std::uint32_t c, wire::message m) {
    on_the_way.push_back({c, true, std::move(m), nodes[c].incarnation});
  }

  void deliver() {
    if (on_the_way.empty()) return;
    // The sockets keep the order of a connection, and leave out what they had before.
    mail const& some = on_the_way[random() % on_the_way.size()];
    auto const first = std::find_if(on_the_way.begin(), on_the_way.end(), [&](mail const& m) {
      return m.child == some.child && m.up == some.up;
    });
    mail const m = *first;
    on_the_way.erase(first);
    // Of a relay's connection nothing is lost but with all that is on it.
    bool const is_relays = m.child == relay_edge;
    if (is_relays && (nodes[relay_edge].is_cut || one_in(40))) {
      std::erase_if(on_the_way, [](mail const& other) { return other.child == relay_edge; });
      return relay.above_anew();
    }
    if (nodes[m.child].is_cut || m.incarnation != nodes[m.child].incarnation) return;
    if (!is_relays && one_in(10)) return;
    if (m.up)
      at_controller(m);
    else if (m.child == relay_edge)
      at_relay(m.m);
    else
      at_node(m);
  }

  void at_controller(mail const& m) {
    gate_book& book = parent_of(m.child);
    book.heard(m.child, m.child == relay_edge ? "relay" : "n" + std::to_string(m.child),
               m.child == relay_edge ? wire::role::relay : wire::role::node, m.incarnation, now);
    nodes[m.child].met = m.incarnation;
    if (auto const* j = std::get_if<wire::gate_join>(&m.m)) book.join(m.child, *j);
    if (auto const* a = std::get_if<wire::gate_ask>(&m.m)) book.ask(m.child, *a, now);
    if (auto const* d = std::get_if<wire::gate_done>(&m.m)) book.done(m.child, *d, now);
  }

  void at_relay(wire::message const& m) {
    if (auto const* k = std::get_if<wire::gate_known>(&m)) relay.above_known(*k);
    if (auto const* s = std::get_if<wire::gate_sync>(&m)) relay.above_sync(*s, now);
    if (auto const* o = std::get_if<wire::gate_open>(&m)) relay.above_open(*o);
  }

  void at_node(mail const& m) {
    node& n = nodes[m.child];
    if (std::get_if<wire::gate_known>(&m.m) != nullptr) n.is_known |= n.has_job;
    if (auto const* s = std::get_if<wire::gate_sync>(&m.m)) {
      if (!n.has_job) return up(m.child, wire::gate_done{s->gate, EIO, "it has no such job"});
      if (!n.is_known) return;  // the book may have another life of ours
      if (!n.has_hole) n.durable = n.written;
      up(m.child, wire::gate_done{s->gate, 0, ""});
    }
    if (auto const* o = std::get_if<wire::gate_open>(&m.m)) opening(*o);
  }

  void opening(wire::gate_open const& o) {
    ++(o.error == 0 ? opened : refused);
    if (o.error != 0) return;
    auto const& then = asked.at(o.gate.counter);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      INFO("gate " << o.gate.counter << " opened, and node " << i << " had written " << then[i]
                   << ", of which durable is " << nodes[i].durable);
      REQUIRE(nodes[i].durable >= then[i]);
    }
  }

  void act(std::uint32_t c) {
    node& n = nodes[c];
    switch (random() % 12) {
      case 0:
      case 1:
        if (n.is_known) ++n.written;
        break;
      case 2:
        n.has_job = true;
        up(c, wire::gate_join{false, {{hydro, n.boot, false, false}}});
        break;
      case 3:
      case 4: {
        std::vector<unsigned> then;
        for (node const& other : nodes) then.push_back(other.written);
        asked[++gates] = then;
        up(c, wire::gate_ask{{1, gates}, hydro, 20 * second});
        break;
      }
      case 5:
        if (gates > 0) {
          std::uint64_t const again = 1 + random() % gates;
          up(c, wire::gate_ask{{1, again}, hydro, 20 * second});
        }
        break;
      case 6:
        if (one_in(5)) n.is_cut = !n.is_cut;
        break;
      case 7:
        if (one_in(10)) {  // its daemon alone: the page cache lives, and the job with it
          ++n.incarnation;
          n.is_known = false;
          wire::gate_join all{true, {}};
          if (n.has_job) all.jobs.push_back({hydro, n.boot, false, false});
          up(c, std::move(all));
        }
        break;
      case 8:
        if (one_in(10)) {  // the machine: the job does not come back unless it is begun again
          ++n.incarnation;
          ++n.boot;
          n.has_hole |= n.durable < n.written;
          n.at_crash = n.written;
          n.has_job = n.is_known = false;
          up(c, wire::gate_join{true, {}});
        }
        break;
      default:
        up(c, wire::bye{});
    }
  }

  /// No more is owed: they were told. Of what was lost below a relay its name is said.
  void is_told(std::string const& why) {
    for (std::uint32_t c = 0; c < relay_edge; ++c) {
      bool const is_named = why.find("node n" + std::to_string(c)) != std::string::npos;
      bool const is_its_relay = is_below(c) && why.find("node relay") != std::string::npos;
      if (!is_named && !is_its_relay) continue;
      nodes[c].has_hole = false;
      nodes[c].durable = std::max(nodes[c].durable, nodes[c].at_crash);
    }
  }

  void settle(gate_book& b, memory& of) {
    b.tick(now);
    if (b.is_dirty() && !one_in(4)) of.put(b, one_in(50));
    for (auto& l : b.take()) {
      auto const* const o = std::get_if<wire::gate_open>(&l.m);
      bool const is_loss = o != nullptr && o->text.find("lost") != std::string::npos;
      if (&b == &book && is_loss) is_told(o->text);
      bool const is_up = l.to == gate_book::above;
      std::uint32_t const child = is_up ? relay_edge : l.to;
      on_the_way.push_back(
          {child, is_up, std::move(l.m), is_up ? nodes[child].incarnation : nodes[child].met});
    }
  }

  void run(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i) {
      now += static_cast<std::int64_t>(random() % (200 * ms));
      act(static_cast<std::uint32_t>(random() % relay_edge));
      for (unsigned k = random() % (has_relay ? 16 : 4); k > 0; --k) deliver();
      settle(book, kept);
      if (has_relay) settle(relay, relay_kept);
      if (one_in(200)) {
        book = gate_book(false, 5, now);
        kept.recall(book);
        if (has_relay) relay.above_anew();  // it is a new connection
      }
      if (has_relay && one_in(200)) {
        relay = gate_book(true, 6, now);
        relay_kept.recall(relay);
        ++nodes[relay_edge].incarnation;
      }
      if (has_relay && one_in(100)) nodes[relay_edge].is_cut = !nodes[relay_edge].is_cut;
      if (has_relay && one_in(5)) up(relay_edge, wire::report{});
    }
  }
};

}  // namespace

TEST_CASE("gates: what was written before an open gate was asked is durable", "[gates]") {
  std::uint64_t opened = 0, refused = 0;
  bool const has_relay = GENERATE(false, true);
  test::for_seeds(300, [&](std::mt19937_64& random) {
    model m(random(), has_relay);
    m.run(3000);
    opened += m.opened;
    refused += m.refused;
  });
  CHECK(opened > 100);  // else it shows nothing
  CHECK(refused > 100);
}
