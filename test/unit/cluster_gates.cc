// SPDX-License-Identifier: Apache-2.0
// Cluster epochs: a gate opens when every node that has written for the job has synced since it was
// asked, and not before, whatever is lost, repeated, killed or started again meanwhile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "cluster/gate_book.h"
#include "unit/seeds.h"

using namespace sluice;
using cluster::gate_book;

namespace {

constexpr std::int64_t ms = 1'000'000, second = 1000 * ms;
constexpr std::uint64_t hydro = 77;

/// A book and the letters it wrote. Children are numbered; their names are n0, n1 …
struct desk {
  gate_book book;
  std::int64_t now = second;
  std::vector<gate_book::letter> sent;

  explicit desk(bool is_relay = false, std::uint64_t number = 5) : book(is_relay, number, second) {}

  void hear(std::uint32_t child, std::uint64_t incarnation = 1) {
    book.heard(child, "n" + std::to_string(child), incarnation, now);
  }
  void join(std::uint32_t child, wire::gate_member const& m = {hydro, 1, false, false}) {
    hear(child);
    book.join(child, {false, {m}});
  }
  void settle(bool keeps = true) {
    book.tick(now);
    if (keeps) book.kept();
    for (auto& l : book.take()) sent.push_back(std::move(l));
  }
  void pass(std::int64_t ns, std::set<std::uint32_t> const& heard = {}) {
    for (std::int64_t const end = now + ns; now < end;) {
      now += 100 * ms;
      for (std::uint32_t c : heard) hear(c);
      settle();
    }
  }
  template <class M>
  std::vector<M> to(std::uint32_t child) {
    std::vector<M> out;
    for (auto const& l : sent)
      if (auto const* m = std::get_if<M>(&l.m); m != nullptr && l.to == child) out.push_back(*m);
    return out;
  }
  void ask(std::uint32_t child, std::uint64_t counter = 1, std::int64_t patience_ns = 30 * second) {
    book.ask(child, {{9, counter}, hydro, patience_ns}, now);
    settle();
  }
  void done(std::uint32_t child, std::uint64_t counter = 1, std::uint32_t error = 0) {
    book.done(child, {{9, counter}, error, error == 0 ? "" : "the disk is full"}, now);
    settle();
  }
  /// The answer to the asker; none yet: nothing.
  std::optional<wire::gate_open> answer(std::uint32_t child = 0) {
    auto const all = to<wire::gate_open>(child);
    if (all.empty()) return std::nullopt;
    return all.back();
  }
  std::string why() { return answer() ? answer()->text : "no answer"; }
};

desk three_nodes() {
  desk d;
  for (std::uint32_t c : {0u, 1u, 2u}) d.join(c);
  d.settle();
  return d;
}

}  // namespace

TEST_CASE("gates: one opens when all have acknowledged, and not before", "[gates]") {
  desk d = three_nodes();
  d.ask(0);
  for (std::uint32_t c : {0u, 1u, 2u}) CHECK(d.to<wire::gate_sync>(c).size() == 1);
  d.done(0);
  d.done(1);
  d.done(1);                               // twice is once
  d.book.done(7, {{9, 1}, 0, ""}, d.now);  // who was not asked
  d.done(2, 4);                            // of another gate
  CHECK_FALSE(d.answer());
  d.done(2);
  REQUIRE(d.answer());
  CHECK(d.answer()->error == 0);
  CHECK(d.answer()->book == 5);
  d.ask(0);  // the answer was lost
  CHECK(d.to<wire::gate_open>(0).size() == 2);
  CHECK(d.to<wire::gate_sync>(1).size() == 1);
}

TEST_CASE("gates: nobody is told that he is written down before he is", "[gates]") {
  desk d;
  d.join(0);
  d.settle(false);
  CHECK(d.to<wire::gate_known>(0).empty());
  d.settle(true);
  REQUIRE(d.to<wire::gate_known>(0).size() == 1);
  CHECK(d.to<wire::gate_known>(0)[0].jobs[0].job == hydro);
  CHECK(d.to<wire::gate_known>(0)[0].book == 5);
}

TEST_CASE("gates: a node that is lost before it acknowledged is an error with its name",
          "[gates]") {
  desk d = three_nodes();
  d.ask(0);
  d.done(0);
  d.done(1);
  SECTION("silent") {
    d.pass(9 * second, {0, 1});
    CHECK_FALSE(d.answer());  // we have just started: it may not have found us
    d.pass(2 * second, {0, 1});
    CHECK(d.why() == "node n2 is silent, and had not acknowledged");
  }
  SECTION("gone") {
    d.book.gone(2);
    d.pass(second, {0, 1});
    CHECK(d.why() == "node n2 left, and had not acknowledged");
  }
  SECTION("started again") {
    d.hear(2, 2);
    d.pass(second, {0, 1});
    CHECK(d.why() == "node n2 was started again, and had not acknowledged");
  }
  SECTION("in doubt about which of its lives") {
    d.hear(2, 2);
    d.done(2);
    d.pass(second, {0, 1});
    CHECK(d.why() == "node n2 was started again, and had not acknowledged");
  }
  SECTION("slow") {
    d.pass(31 * second, {0, 1, 2});
    CHECK(d.why() == "node n2 has not acknowledged in time");
    CHECK(d.to<wire::gate_sync>(2).size() > 20);  // messages may be lost
    CHECK(d.to<wire::gate_sync>(1).size() == 1);
  }
  SECTION("with an error") {
    d.done(2, 1, ENOSPC);
    CHECK(d.why() == "node n2: the disk is full");
    CHECK(d.answer()->error == ENOSPC);
  }
  CHECK(d.answer()->error != 0);
  CHECK(d.book.take_failures().size() == 1);
  d.done(2);  // too late
  CHECK(d.answer()->error != 0);
}

TEST_CASE("gates: what was lost with a machine is told to one gate", "[gates]") {
  desk d = three_nodes();
  SECTION("another boot") {
    d.join(2, {hydro, 2, false, false});
    d.ask(0, 1);
    CHECK(d.why() == "node n2 was started again, and what it had not synced is lost");
  }
  SECTION("the job is not there any more") {
    d.book.join(2, {true, {}});
    d.ask(0, 1);
    CHECK(d.why() == "node n2 has lost the job, and nobody synced what it wrote");
  }
  SECTION("it could not be synced at its end") {
    d.join(2, {hydro, 1, true, true});
    d.ask(0, 1);
    CHECK(d.why() == "node n2 could not sync what the job wrote");
  }
  d.pass(second, {0, 1, 2});
  d.ask(0, 2);
  for (std::uint32_t c : {0u, 1u, 2u}) d.done(c, 2);
  CHECK(d.answer()->error == 0);
}

TEST_CASE("gates: who has ended and synced is not asked", "[gates]") {
  desk d = three_nodes();
  d.join(2, {hydro, 1, true, false});
  d.settle();
  CHECK(d.to<wire::gate_known>(2).back().jobs[0].is_over);
  d.ask(0);
  d.done(0);
  d.done(1);
  CHECK(d.answer()->error == 0);
  CHECK(d.book.rows() == 2);
}

TEST_CASE("gates: nobody asks for a job that is not his", "[gates]") {
  desk d = three_nodes();
  d.hear(3);
  d.book.ask(3, {{9, 1}, hydro, second}, d.now);
  d.settle();
  REQUIRE(d.answer(3));
  CHECK(d.answer(3)->error != 0);
  CHECK(d.to<wire::gate_sync>(1).empty());
}

TEST_CASE("gates: a controller that starts again knows whom to ask", "[gates]") {
  desk before = three_nodes();
  before.ask(0);
  desk d(false, 6);
  d.book.from_text(before.book.to_text());
  d.hear(0);
  d.hear(1);
  d.ask(0);  // again: who asked goes on asking
  d.done(0);
  d.done(1);
  CHECK_FALSE(d.answer());  // n2 has not found us yet
  SECTION("it comes") {
    d.hear(2);
    d.pass(second, {0, 1, 2});
    CHECK(d.to<wire::gate_sync>(2).size() >= 1);
    d.done(2);
    CHECK(d.answer()->error == 0);
    CHECK(d.answer()->book == 5);
  }
  SECTION("it does not") {
    d.pass(11 * second, {0, 1});
    CHECK(d.why() == "node n2 is silent, and had not acknowledged");
  }
}

TEST_CASE("gates: a memory that is lost has another number, one that is broken is refused",
          "[gates]") {
  desk d(false, 6);
  d.join(0);
  d.settle();
  CHECK(d.to<wire::gate_known>(0)[0].book == 6);
  std::string const text = d.book.to_text();
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 5)
    CHECK_THROWS(d.book.from_text(text.substr(0, cut)));
  CHECK_THROWS(d.book.from_text(R"({"book": "x", "jobs": []})"));
  CHECK(d.book.rows() == 1);
}

TEST_CASE("gates: a relay answers for its children", "[gates]") {
  desk d(true);
  d.join(0);
  d.join(1);
  d.settle();
  CHECK(d.to<wire::gate_known>(0).empty());  // the parent has not written it down
  REQUIRE(d.to<wire::gate_join>(gate_book::above).size() == 1);
  d.book.above_known({8, {{hydro, false}}});
  d.settle();
  REQUIRE(d.to<wire::gate_known>(1).size() == 1);
  std::uint64_t const book = d.to<wire::gate_known>(1)[0].book;
  SECTION("up") {
    d.ask(1);
    CHECK(d.to<wire::gate_ask>(gate_book::above).size() == 1);
    CHECK(d.to<wire::gate_sync>(0).empty());
    d.book.above_open({{9, 1}, 8, 0, ""});
    d.settle();
    REQUIRE(d.answer(1));
    CHECK(d.answer(1)->error == 0);
    CHECK(d.answer(1)->book == book);
    CHECK_FALSE(d.answer(0));
  }
  SECTION("down") {
    d.book.above_sync({{9, 1}, hydro, 30 * second}, d.now);
    d.settle();
    d.done(0);
    CHECK(d.to<wire::gate_done>(gate_book::above).empty());
    SECTION("all") {
      d.done(1);
      CHECK(d.to<wire::gate_done>(gate_book::above).at(0).error == 0);
      d.book.above_sync({{9, 1}, hydro, 30 * second}, d.now);  // the answer was lost
      d.settle();
      CHECK(d.to<wire::gate_done>(gate_book::above).size() == 2);
    }
    SECTION("but one") {
      d.book.gone(1);
      d.pass(second, {0});
      auto const m = d.to<wire::gate_done>(gate_book::above).at(0);
      CHECK(m.error != 0);
      CHECK(m.text == "node n1 left, and had not acknowledged");
    }
  }
  SECTION("a parent with another memory") {
    d.book.above_anew();
    d.pass(2 * second, {0, 1});
    CHECK(d.to<wire::gate_join>(gate_book::above).size() >= 2);
    d.book.above_known({9, {{hydro, false}}});
    d.join(0);
    d.settle();
    CHECK(d.to<wire::gate_known>(0).back().book != book);
  }
  SECTION("the job ends") {
    d.join(0, {hydro, 1, true, false});
    d.settle();
    CHECK(d.to<wire::gate_join>(gate_book::above).size() == 1);
    d.join(1, {hydro, 1, true, false});
    d.pass(100 * ms);
    CHECK(d.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
    d.join(1);  // and begins again before the parent has heard of it
    d.book.above_known({8, {{hydro, true}}});
    std::size_t const told = d.to<wire::gate_known>(1).size();
    d.settle();
    CHECK(d.to<wire::gate_known>(1).size() == told);  // that was the end, not the new beginning
    d.book.above_known({8, {{hydro, false}}});
    d.settle();
    CHECK_FALSE(d.to<wire::gate_known>(1).back().jobs[0].is_over);
  }
}

// Nodes that write, sync, crash and are cut off; a controller that is started again from what it
// had kept; messages that are lost and late, and questions that are asked again. Each node has a
// count of what it wrote and of what of that is durable. Whenever a gate opens, what was written
// before it was asked is durable.
namespace {

struct model {
  struct node {
    std::uint64_t incarnation = 1, boot = 1;
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

  std::mt19937_64 random;
  gate_book book{false, 5, 0};
  std::string kept;
  std::int64_t now = 0;
  std::vector<node> nodes = std::vector<node>(4);
  std::vector<mail> on_the_way;
  std::map<std::uint64_t, std::vector<unsigned>> asked;  // gate -> what was written when it was
  std::uint64_t gates = 0, opened = 0, refused = 0;

  explicit model(std::uint64_t seed) : random(seed) { kept = book.to_text(); }

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
    if (nodes[m.child].is_cut || m.incarnation != nodes[m.child].incarnation || one_in(10)) return;
    if (m.up)
      at_controller(m);
    else
      at_node(m);
  }

  void at_controller(mail const& m) {
    book.heard(m.child, "n" + std::to_string(m.child), m.incarnation, now);
    if (auto const* j = std::get_if<wire::gate_join>(&m.m)) book.join(m.child, *j);
    if (auto const* a = std::get_if<wire::gate_ask>(&m.m)) book.ask(m.child, *a, now);
    if (auto const* d = std::get_if<wire::gate_done>(&m.m)) book.done(m.child, *d, now);
  }

  void at_node(mail const& m) {
    node& n = nodes[m.child];
    if (std::get_if<wire::gate_known>(&m.m) != nullptr) n.is_known = true;
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

  void settle() {
    book.tick(now);
    if (book.is_dirty() && !one_in(4)) {
      kept = book.to_text();
      book.kept();
    }
    for (auto& l : book.take()) {
      if (auto const* o = std::get_if<wire::gate_open>(&l.m))
        if (o->text.find("lost") != std::string::npos) {
          node& n = nodes.at(static_cast<std::size_t>(o->text.at(6) - '0'));
          n.has_hole = false;
          n.durable = std::max(n.durable, n.at_crash);  // no more is owed: they were told
        }
      on_the_way.push_back({l.to, false, std::move(l.m), nodes[l.to].incarnation});
    }
  }

  void run(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i) {
      now += static_cast<std::int64_t>(random() % (200 * ms));
      act(static_cast<std::uint32_t>(random() % nodes.size()));
      for (unsigned k = random() % 4; k > 0; --k) deliver();
      settle();
      if (one_in(200)) {
        book = gate_book(false, 5, now);
        book.from_text(kept);
      }
    }
  }
};

}  // namespace

TEST_CASE("gates: what was written before an open gate was asked is durable", "[gates]") {
  std::uint64_t opened = 0, refused = 0;
  test::for_seeds(40, [&](std::mt19937_64& random) {
    model m(random());
    m.run(3000);
    opened += m.opened;
    refused += m.refused;
  });
  CHECK(opened > 100);  // else it shows nothing
  CHECK(refused > 100);
}
