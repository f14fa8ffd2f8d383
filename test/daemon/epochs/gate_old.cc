// SPDX-License-Identifier: Apache-2.0
// Gates of a cluster where some nodes or relays are too old to answer: never open while one of them
// has the job, or may have it.
#include <catch2/catch.hpp>

#include "gate_desk.h"

using namespace sluice;
using namespace sluice::test;
using age = gate_book::age;

namespace {

/// n0 to n2 have the job; n3 is old, and has another.
desk with_old() {
  desk d = three_nodes();
  d.book.heard(3, "n3", 1, d.now, age::old_node);
  d.book.old_has(3, 78, d.now);
  return d;
}

}  // namespace

TEST_CASE("gates: a node that is too old to answer keeps those of its jobs shut", "[gates]") {
  desk d = with_old();
  d.book.old_has(3, hydro, d.now);
  d.ask(0);
  CHECK(d.why() == "node n3 is too old to know of epochs");
  CHECK(d.to<wire::gate_sync>(0).empty());
  SECTION("and has left") {
    d.book.gone(3);
    d.pass(20 * second, {0, 1, 2});
    d.ask(0, 2);
    CHECK(d.why() == "node n3 was too old to know of epochs");
  }
  SECTION("and is updated") {
    d.hear(3, 2);
    d.ask(0, 2);
    CHECK(d.why() == "node n3 was too old to know of epochs");
    d.join(3);
    d.ask(0, 3);
    CHECK(d.why() == "node n3 was too old to know of epochs, and what it wrote may be lost");
    d.ask(0, 4);
    for (std::uint32_t c : {0u, 1u, 2u}) d.done(c, 4);
    CHECK(d.to<wire::gate_open>(0).size() == 3);
    d.done(3, 4);
    CHECK(d.answer()->error == 0);
  }
}

TEST_CASE("gates: a node that is too old is waited for until it has said what it has", "[gates]") {
  desk d = with_old();
  d.book.old_has_told(3, d.now - 1);
  d.ask(0);
  for (std::uint32_t c : {0u, 1u, 2u}) d.done(c);
  CHECK_FALSE(d.answer());  // by then it may have begun
  CHECK(d.to<wire::gate_sync>(3).empty());
  SECTION("not") {
    d.book.old_has_told(3, d.now);
    d.pass(100 * ms, {0, 1, 2});
    CHECK(d.answer()->error == 0);
  }
  SECTION("but now it has") {
    d.book.old_has(3, hydro, d.now);
    d.book.old_has_told(3, d.now);
    d.pass(100 * ms, {0, 1, 2});
    CHECK(d.why() == "node n3 is too old to know of epochs");
  }
  SECTION("nothing more") {
    d.pass(20 * second, {0, 1, 2});
    CHECK(d.why() == "node n3 is silent, and had not acknowledged");
    d.ask(0, 2);
    CHECK(d.why() == "node n3 is silent, and had not acknowledged");
    d.pass(120 * second, {0, 1, 2});
    d.ask(0, 3);
    CHECK(d.to<wire::gate_open>(0).size() == 3);
  }
  SECTION("that it leaves") {
    d.book.gone(3);
    d.pass(100 * ms, {0, 1, 2});
    CHECK(d.why() == "node n3 left, and had not acknowledged");
    d.ask(0, 2);
    for (std::uint32_t c : {0u, 1u, 2u}) d.done(c, 2);
    CHECK(d.answer()->error == 0);
    d.book.heard(3, "n3", 1, d.now, age::old_node);
    d.ask(0, 3);
    for (std::uint32_t c : {0u, 1u, 2u}) d.done(c, 3);
    CHECK(d.to<wire::gate_open>(0).size() == 2);
  }
}

TEST_CASE("gates: a controller that starts again knows who is too old", "[gates]") {
  desk d = with_old();
  d.settle();
  desk again(false, 6);
  again.book.from_text(d.book.to_text());
  for (std::uint32_t c : {0u, 1u, 2u}) again.hear(c);
  again.ask(0);
  for (std::uint32_t c : {0u, 1u, 2u}) again.done(c);
  CHECK_FALSE(again.answer());
  SECTION("it comes back with the job") {
    again.book.heard(3, "n3", 1, again.now, age::old_node);
    again.book.old_has(3, hydro, again.now);
    CHECK((again.settle(), again.why()) == "node n3 is too old to know of epochs");
  }
  SECTION("it does not") {
    again.pass(11 * second, {0, 1, 2});
    CHECK(again.why() == "node n3 is silent, and had not acknowledged");
  }
}

TEST_CASE("gates: a relay that is too old cannot say in time what is below it", "[gates]") {
  desk d = with_old();
  d.book.heard(4, "r1", 1, d.now, age::old_relay);
  d.ask(0);
  CHECK(d.why() == "relay r1 is too old to know of epochs");
}

TEST_CASE("gates: a relay is asked for its old nodes, whatever the job", "[gates]") {
  desk r(true);
  r.book.heard(3, "n3", 1, r.now, gate_book::age::old_node);
  r.settle();
  REQUIRE(r.to<wire::gate_join>(gate_book::above).size() == 1);
  wire::gate_join const joins = r.to<wire::gate_join>(gate_book::above)[0];
  CHECK(joins.jobs[0].job == gate_book::any_job);
  desk top = three_nodes();
  top.book.heard(5, "r1", 1, top.now);
  top.book.join(5, joins);
  top.settle();
  top.ask(0);
  for (std::uint32_t c : {0u, 1u, 2u}) top.done(c);
  REQUIRE(top.to<wire::gate_sync>(5).size() == 1);
  CHECK_FALSE(top.answer());
  r.book.above_sync(top.to<wire::gate_sync>(5)[0], r.now);
  r.settle();
  CHECK(r.to<wire::gate_done>(gate_book::above).empty());
  SECTION("none of them has it") {
    r.book.old_has_told(3, r.now);
    r.pass(100 * ms);
    REQUIRE(r.to<wire::gate_done>(gate_book::above).size() == 1);
    top.book.done(5, r.to<wire::gate_done>(gate_book::above)[0], top.now);
    top.settle();
    REQUIRE(top.answer());
    CHECK(top.answer()->error == 0);
    CHECK(r.book.take_failures().empty());
  }
  SECTION("one has it") {
    r.book.old_has(3, hydro, r.now);
    r.settle();
    REQUIRE(r.to<wire::gate_done>(gate_book::above).size() == 1);
    top.book.done(5, r.to<wire::gate_done>(gate_book::above)[0], top.now);
    top.settle();
    CHECK(top.why() == "node r1: node n3 is too old to know of epochs");
  }
  SECTION("the relay had the job, and has lost its book") {
    top.book.join(5, {false, {{hydro, 0, false, false}}});
    top.settle();
    top.ask(0, 2);
    for (std::uint32_t c : {0u, 1u, 2u}) top.done(c, 2);
    top.book.done(5, {{9, 2}, ENOENT, "nobody has said here"}, top.now);
    top.settle();
    CHECK(top.answer()->error != 0);
  }
  SECTION("it is updated") {
    r.hear(3, 2);
    r.book.above_known({8, {{gate_book::any_job, false}}});  // crossed on the way
    r.pass(second, {3});
    CHECK(r.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
  }
}
