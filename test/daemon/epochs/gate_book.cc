// SPDX-License-Identifier: Apache-2.0
// Cluster epochs: a gate opens when every node that has written for the job has synced since it was
// asked, and not before, whatever is lost, repeated, killed or started again meanwhile.
#include <catch2/catch.hpp>
#include <ctime>

#include "base/error.h"
#include "gate_desk.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("gates: one opens when all have acknowledged, and not before", "[gates]") {
  desk d = three_nodes();
  d.ask(0);
  for (std::uint32_t c : {0u, 1u, 2u}) CHECK(d.to<wire::gate_sync>(c).size() == 1);
  d.done(0);
  d.done(1);
  d.done(1);                               // twice is once
  d.book.done(7, {d.id(), 0, ""}, d.now);  // who was not asked
  d.done(2, 4);                            // of another gate
  CHECK_FALSE(d.answer());
  d.ask(0);  // again
  REQUIRE(d.answer());
  CHECK(d.answer()->error == EINPROGRESS);
  CHECK(d.why() == "n2");
  d.done(2);
  REQUIRE(d.answer());
  CHECK(d.answer()->error == 0);
  CHECK(d.answer()->book == 5);
  d.ask(0);  // the answer was lost
  CHECK(d.to<wire::gate_open>(0).size() == 3);
  CHECK(d.to<wire::gate_sync>(1).size() == 1);
}

TEST_CASE("gates: one of many nodes costs a few looks at each", "[gates]") {
  constexpr std::uint32_t nodes = 256;
  desk d;
  for (std::uint32_t c = 0; c < nodes; ++c) d.join(c);
  d.settle();
  d.ask(0);
  for (std::uint32_t c = nodes; c > 0; --c) {
    REQUIRE_FALSE(d.answer());
    d.done(c - 1);
  }
  REQUIRE(d.answer());
  CHECK(d.answer()->error == 0);
  CHECK(d.book.looks() <= 4 * nodes);
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

TEST_CASE("gates: nobody takes a loss from others by asking first", "[gates]") {
  desk d = three_nodes();
  d.join(3);
  d.settle();
  bool const is_there = GENERATE(true, false);
  if (is_there)
    d.join(2, {hydro, 2, false, false});
  else
    d.book.join(2, {true, {}});
  std::string const why = is_there ? "node n2 was started again, and what it had not synced is lost"
                                   : "node n2 has lost the job, and nobody synced what it wrote";
  auto const passes = [&](std::uint32_t who, std::uint64_t counter) {
    d.ask(who, counter);
    for (std::uint32_t c : {0u, 1u, 2u, 3u}) d.done(c, counter);
    return d.answer(who)->error == 0;
  };
  CHECK_FALSE(passes(3, 1));
  for (std::uint64_t counter = 2; counter <= 4; ++counter) CHECK(passes(3, counter));
  desk again;
  again.book.from_text(d.book.to_text());
  d.book = std::move(again.book);  // who was told is remembered
  for (std::uint32_t c : {0u, 1u, 2u, 3u}) d.hear(c);
  CHECK(passes(3, 5));
  CHECK_FALSE(passes(0, 6));
  CHECK(d.why() == why);
  CHECK(passes(0, 7));
  CHECK_FALSE(passes(1, 8));
  if (is_there) CHECK_FALSE(passes(2, 9));  // and now all know
  CHECK(d.book.rows() == (is_there ? 4 : 3));
  CHECK(d.book.to_text().find("lost") == std::string::npos);
}

TEST_CASE("gates: a child that lost something hears of it, whoever asks before", "[gates]") {
  bool const is_of_relay = GENERATE(false, true);
  auto const who = is_of_relay ? wire::role::relay : wire::role::node;
  desk d;
  for (std::uint32_t c : {0u, 1u}) {
    d.hear(c, 1, c == 0 ? who : wire::role::node);
    d.book.join(c, {false, {{hydro, 1, false, false}}});
  }
  d.settle();
  // The machine of n0 was started again, or one below it was; the job goes on there.
  d.hear(0, 2, who);
  d.book.join(0, {!is_of_relay, {{hydro, 2, false, false}}});
  d.settle();
  auto const passes = [&](std::uint32_t asker, std::uint64_t counter) {
    d.ask(asker, counter);
    for (std::uint32_t c : {0u, 1u}) d.done(c, counter);
    return d.answer(asker)->error == 0;
  };
  CHECK_FALSE(passes(1, 1));
  for (std::uint64_t counter = 2; counter <= 4; ++counter) CHECK(passes(1, counter));
  CHECK_FALSE(passes(0, 5));
  CHECK(d.why() == "node n0 was started again, and what it had not synced is lost");
  CHECK(passes(0, 6));
  CHECK(d.book.to_text().find("lost") == std::string::npos);
}

TEST_CASE("gates: a loss that shows while a gate is asked fails it", "[gates]") {
  desk d = three_nodes();
  desk again(false, 6);
  again.book.from_text(d.book.to_text());
  for (std::uint32_t c : {0u, 1u}) again.hear(c);
  again.ask(0);
  for (std::uint32_t c : {0u, 1u}) again.done(c);
  again.join(2, {hydro, 2, false, false});  // that machine, and the job on it, begin anew
  again.pass(100 * ms, {0, 1, 2});
  again.done(2);
  CHECK(again.why() == "node n2 was started again, and what it had not synced is lost");
}

TEST_CASE("gates: who starts again is not told of what he had asked before", "[gates]") {
  desk d;
  d.join(0);
  d.settle(false);  // the disk is full
  d.hear(0, 2);
  d.book.join(0, {true, {}});
  d.settle();
  CHECK(d.to<wire::gate_known>(0).empty());
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
  d.ask_for(hydro, 3, 1, second);
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

TEST_CASE("gates: a relay takes out above what ended while it was down, or could not say so",
          "[gates]") {
  desk before(true);
  before.join(0);
  before.look();
  REQUIRE(before.to<wire::gate_join>(gate_book::above).size() == 1);
  bool const is_new_life = GENERATE(true, false);
  desk next(true, 6);
  if (is_new_life) next.book.from_text(before.book.to_text());
  desk& d = is_new_life ? next : before;
  d.sent.clear();
  d.book.above_anew();
  d.join(0, {hydro, 1, true, false});  // before it has told its parent anything
  SECTION("it says so") {}
  SECTION("and its next life, where that was lost") {
    desk third(true, 7);
    third.book.from_text(d.book.to_text());
    third.look();
    d.sent = std::move(third.sent);
  }
  d.look();
  auto const said = d.to<wire::gate_join>(gate_book::above);
  REQUIRE(!said.empty());
  CHECK(said[0].jobs.size() == 1);
  CHECK(said[0].jobs[0].is_over);
  d.book.above_known({3, {{hydro, true}}});
  d.sent.clear();
  d.pass(3 * second, {0});
  CHECK(d.to<wire::gate_join>(gate_book::above).empty());  // that is the end of it
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
    d.book.above_open({d.id(), 8, 0, ""});
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
}

/// Below it are n0 and n1, and its parent has written it down.
static desk relay_of_two() {
  desk d(true);
  d.join(0);
  d.join(1);
  d.settle();
  d.book.above_known({8, {{hydro, false}}});
  d.settle();
  return d;
}

TEST_CASE("gates: a job that ends below a relay, and begins again", "[gates]") {
  desk d = relay_of_two();
  d.join(0, {hydro, 1, true, false});
  d.look();
  CHECK(d.to<wire::gate_join>(gate_book::above).size() == 1);
  d.join(1, {hydro, 1, true, false});
  d.pass(100 * ms);
  CHECK(d.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
  d.book.above_known({8, {{hydro, false}}});  // about the join before: it is about to forget us
  d.join(1);                                  // and begins again before the parent has heard of it
  d.book.above_known({8, {{hydro, false}}});
  d.pass(2 * second, {1});
  CHECK(d.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
  d.book.above_known({8, {{hydro, true}}});
  std::size_t const told = d.to<wire::gate_known>(1).size();
  d.look();
  CHECK(d.to<wire::gate_known>(1).size() == told);  // that was the end, not the new beginning
  CHECK_FALSE(d.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
  d.book.above_known({8, {{hydro, false}}});
  d.look();
  CHECK_FALSE(d.to<wire::gate_known>(1).back().jobs[0].is_over);
}

TEST_CASE("gates: what is lost below a relay is noted above before it is forgotten", "[gates]") {
  desk d = relay_of_two();
  d.join(1, {hydro, 2, false, false});  // that machine was started again
  d.look();
  auto const join = d.to<wire::gate_join>(gate_book::above).back().jobs[0];
  CHECK(join.boot == 1);
  auto const syncs = [&](std::uint64_t counter) {
    d.book.above_sync({{9, counter}, hydro, 30 * second}, d.now);
    d.settle();
    for (std::uint32_t c : {0u, 1u}) d.done(c, counter);
    return d.to<wire::gate_done>(gate_book::above).back().error == 0;
  };
  CHECK_FALSE(syncs(1));  // of which the asker may never have heard
  CHECK_FALSE(syncs(2));
  SECTION("noted") {
    d.book.above_known({8, {{hydro, false}}});
    d.pass(100 * ms, {0, 1});
    CHECK(syncs(3));
  }
  SECTION("the relay starts again first") {
    desk again(true, 6);
    again.book.from_text(d.book.to_text());
    again.look();
    CHECK(again.to<wire::gate_join>(gate_book::above).back().jobs[0].boot == 2);
  }
  SECTION("what the parent makes of it") {
    desk top = three_nodes();
    top.join(5, {hydro, 0, false, false});
    top.look();
    top.join(5, join);
    top.look();
    top.ask(0);
    CHECK(top.why() == "node n5 was started again, and what it had not synced is lost");
  }
}

TEST_CASE("gates: a book that names a job by half its key is refused", "[gates]") {
  desk d = three_nodes();
  std::string text = d.book.to_text();
  std::string const now = "000000000000000000000000000000" + std::string("4d");
  REQUIRE(text.find(now) != std::string::npos);
  desk again;
  again.book.from_text(text);
  CHECK(again.book.rows() == 3);
  for (std::size_t at; (at = text.find(now)) != std::string::npos;)
    text.replace(at, 32, now, 16, 16);
  CHECK_THROWS_AS(desk().book.from_text(text), sluice::error);
}

TEST_CASE("gates: a loss of a job that is over everywhere is forgotten in time", "[gates]") {
  desk d = three_nodes();
  constexpr std::int64_t minute = 60 * second;
  wire::gate_member const lost = {hydro, 1, true, true};
  d.join(0, lost);
  REQUIRE(d.book.rows() == 3);
  SECTION("while a node has it, it stays") {
    d.pass(40 * minute, {0, 1, 2});
    CHECK(d.book.rows() == 3);
    d.ask(1);
    CHECK(d.why_of(1) == "node n0 could not sync what the job wrote");
  }
  SECTION("nobody has it") {
    d.join(1, lost);
    d.join(2, {hydro, 1, true, false});
    d.pass(20 * minute, {0, 1, 2});
    CHECK(d.book.rows() == 2);
    d.pass(20 * minute, {0, 1, 2});
    CHECK(d.book.rows() == 0);
  }
}

TEST_CASE("gates: a relay forgets no loss that its parent has not noted", "[gates]") {
  desk d = relay_of_two();
  for (std::uint32_t c : {0u, 1u}) d.join(c, {hydro, 1, true, true});
  d.pass(2400 * second, {0, 1});
  CHECK(d.book.rows() == 2);
  CHECK_FALSE(d.to<wire::gate_join>(gate_book::above).back().jobs[0].is_over);
}

TEST_CASE("gates: those of one node that have opened do not fill the book", "[gates]") {
  desk d;
  for (std::uint32_t c : {0u, 1u}) d.join(c, {hydro, 1, false, false});
  d.settle();
  std::uint64_t counter = 0;
  for (int i = 0; i < 5000; ++i) {
    ++counter;
    d.ask(0, counter);
    d.done(0, counter);
    d.done(1, counter);
    d.pass(50 * ms, {0, 1});
    REQUIRE(d.answer()->error == 0);
  }
  d.ask(1, ++counter);
  CHECK_FALSE(d.answer(1));  // it has a place
  d.ask(0, counter - 1);     // the last answer was lost
  CHECK(d.answer()->error == 0);
}

TEST_CASE("gates: those of one job that have failed do not shut the gates of others", "[gates]") {
  desk d;
  constexpr std::uint64_t other = 78;
  for (std::uint32_t c : {0u, 1u}) d.join(c, {hydro, 1, false, false});
  d.join(1, {other, 1, false, false});
  d.settle();
  std::uint64_t counter = 0;
  for (int i = 0; i < 6000; ++i) {
    d.ask(0, ++counter);
    d.done(0, counter, EIO);
    d.pass(50 * ms, {0, 1});
    REQUIRE(d.answer()->error == EIO);
  }
  d.ask_for(other, 1, ++counter);
  d.settle();
  d.done(1, counter);
  REQUIRE(d.answer(1));
  CHECK(d.answer(1)->error == 0);
  d.ask(0, counter - 1);  // the last answer was lost
  CHECK(d.answer()->error == EIO);
}

TEST_CASE("gates: the answer of a node is not pushed out by what others ask", "[gates]") {
  desk d = three_nodes();
  d.join(3);
  d.hear(4);  // it does not have the job
  d.settle();
  d.ask(0, 1);
  d.done(0, 1, EIO);
  REQUIRE(d.answer());
  for (std::uint64_t counter = 2; counter <= 200; ++counter) {
    d.ask(4, counter);
    d.ask(3, counter);
    d.done(3, counter, ENOSPC);
  }
  d.pass(100 * ms, {0, 1, 2, 3, 4});
  d.ask(0, 1);  // the answer was lost
  CHECK(d.to<wire::gate_open>(0).size() == 2);
  CHECK(d.answer()->error == EIO);
}

TEST_CASE("gates: a relay keeps no way back for what was answered", "[gates]") {
  desk d(true);
  for (std::uint32_t c : {0u, 1u}) d.join(c);
  d.settle();
  d.book.above_known({8, {{hydro, false}}});
  d.settle();
  std::uint64_t counter = 0;
  auto const open = [&](std::uint32_t child) {
    d.now += 40 * ms;
    d.ask(child, ++counter);
    d.book.above_open({d.id(counter), 8, 0, ""});
    d.settle();
    return d.answer(child) && d.answer(child)->error == 0 &&
           d.answer(child)->gate.counter == counter;
  };
  for (int i = 0; i < 5000; ++i) REQUIRE(open(0));
  CHECK(open(1));
  // Who waits for hundreds waits alone.
  for (int i = 0; i < 5000; ++i) d.ask(0, ++counter);
  CHECK(d.answer()->error == EBUSY);
  CHECK(open(1));
}

TEST_CASE("gates: two nodes that number alike have gates of their own", "[gates]") {
  desk d;
  constexpr std::uint64_t own = 78;
  for (std::uint32_t c : {0u, 1u}) d.join(c);
  d.join(1, {own, 1, false, false});
  d.settle();
  d.ask_for(own, 1);  // in the name of the other one, before that one has asked
  d.done(1);
  REQUIRE(d.answer(1));
  CHECK(d.answer(1)->error == 0);
  d.ask(0);
  d.done(0);
  CHECK_FALSE(d.answer(0));  // n1 has synced another job
  d.done(1);
  REQUIRE(d.answer(0));
  CHECK(d.answer(0)->error == 0);
  CHECK(d.answer(0)->gate == wire::gate_id{9, 1});
  CHECK(d.to<wire::gate_open>(1).size() == 1);
}

TEST_CASE("gates: two nodes below a relay that number alike have gates of their own", "[gates]") {
  desk d = relay_of_two();
  d.ask(0);
  wire::gate_id const first = d.id();
  d.ask(1);
  wire::gate_id const second_one = d.id();
  auto const asked = d.to<wire::gate_ask>(gate_book::above);
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].gate == first);
  CHECK(asked[1].gate == second_one);
  CHECK(first != second_one);
  d.book.above_open({second_one, 8, EIO, "lost"});
  d.settle();
  CHECK_FALSE(d.answer(0));
  REQUIRE(d.answer(1));
  CHECK(d.answer(1)->gate == wire::gate_id{9, 1});
  d.book.above_open({first, 8, 0, ""});
  d.settle();
  REQUIRE(d.answer(0));
  CHECK(d.answer(0)->error == 0);
}

TEST_CASE("gates: a relay speaks for many nodes, a node for itself", "[gates]") {
  desk d;
  d.hear(0);
  d.hear(1, 1, wire::role::relay);
  for (std::uint32_t c : {0u, 1u}) d.book.join(c, {false, {{hydro, 1, false, false}}});
  d.settle();
  for (std::uint32_t c : {0u, 1u})
    for (std::uint64_t counter = 1; counter <= 300; ++counter) d.ask(c, counter);
  auto const refused = [&](std::uint32_t child) {
    auto const all = d.to<wire::gate_open>(child);
    return std::ranges::count(all, unsigned(EBUSY), &wire::gate_open::error);
  };
  CHECK(refused(0) == 44);
  CHECK(refused(1) == 0);
}

TEST_CASE("gates: some places are kept for children that have no gate", "[gates]") {
  desk d;
  for (std::uint32_t c = 0; c < 20; ++c) d.join(c);
  d.settle();
  for (std::uint32_t c = 0; c < 19; ++c)
    for (std::uint64_t counter = 1; counter <= 256; ++counter) d.ask_for(hydro, c, counter);
  d.ask_for(hydro, 19);
  d.settle();
  CHECK_FALSE(d.answer(19));  // it is asked about
  d.ask_for(hydro, 19, 2);
  d.settle();
  REQUIRE(d.answer(19));
  CHECK(d.answer(19)->error == EBUSY);
}

TEST_CASE("gates: a node has so many jobs, and a flood of them is told", "[gates]") {
  desk d;
  d.join(1);
  d.hear(0);
  d.hear(2, 1, wire::role::relay);
  wire::gate_join flood;
  for (std::uint64_t job = 0; job < 5000; ++job) flood.jobs.push_back({1000 + job, 1});
  d.book.join(0, flood);
  d.book.join(0, flood);
  CHECK(d.book.rows() == 1 + 4096);
  d.settle();
  CHECK(d.book.take_refused() == std::vector<std::string>{"n0"});
  d.book.join(2, flood);
  CHECK(d.book.rows() == 1 + 4096 + 5000);
  CHECK(d.book.take_refused().empty());
  // What it may change before it is answered is bounded, too.
  d.settle(false);
  std::size_t const told = d.to<wire::gate_known>(0).size();
  for (std::uint64_t boot = 2; boot < 5; ++boot) {
    for (auto& one : flood.jobs) one.boot = boot;
    d.book.join(0, flood);
  }
  d.settle();
  std::size_t rows = 0;
  auto const known = d.to<wire::gate_known>(0);
  for (std::size_t i = told; i < known.size(); ++i) rows += known[i].jobs.size();
  CHECK(rows == 4096);
}

static wire::gate_join jobs_from(std::uint64_t first, std::uint64_t count, bool is_all = false) {
  wire::gate_join out = {is_all, {}};
  for (std::uint64_t job = first; job < first + count; ++job) out.jobs.push_back({job, 1});
  return out;
}

TEST_CASE("gates: a list of all jobs costs no look at what others have", "[gates]") {
  desk d;
  d.hear(0, 1, wire::role::relay);
  constexpr std::uint64_t jobs = 256 * 1024, part = 32 * 1024;
  for (std::uint64_t job = 1; job <= jobs; job += part) {
    d.book.join(0, jobs_from(job, part));
    d.settle();
  }
  REQUIRE(d.book.rows() == jobs);
  d.hear(1);
  std::clock_t const began = std::clock();  // of this process's work
  for (int i = 0; i < 1000; ++i) {
    d.book.join(1, jobs_from(hydro, 1, true));
    d.settle();
  }
  CHECK(std::clock() - began < 2 * CLOCKS_PER_SEC);
}

TEST_CASE("gates: what a node leaves out and joins before it is written is bounded", "[gates]") {
  desk d;
  d.hear(0);
  d.book.join(0, jobs_from(1, 4096));
  d.settle();
  for (std::uint64_t i = 1; i <= 8; ++i) {
    d.hear(0, 1 + i % 2);  // also when it begins a new life each time
    d.book.join(0, jobs_from(1 + 4096 * i, 4096, true));
  }
  auto const changed = [&] {
    std::string const text = d.book.changes();
    std::size_t count = 0;
    for (std::size_t at = text.find("job"); at != text.npos; at = text.find("job", at + 1)) ++count;
    return count;
  };
  CHECK(changed() <= 2 * 4096);
  CHECK(d.book.take_refused() == std::vector<std::string>{"n0"});
  d.settle();
  d.book.join(0, jobs_from(1 + 4096, 1, true));  // it is written: there is room again
  CHECK(changed() == 1);
  d.ask_for(1, 0);
  d.settle();
  CHECK(d.why() == "node n0 has lost the job, and nobody synced what it wrote");
}

TEST_CASE("gates: a relay leaves nothing out, whatever it calls its list", "[gates]") {
  desk d;
  d.join(1);
  d.hear(0, 1, wire::role::relay);
  d.book.join(0, {false, {{hydro, 1, false, false}}});
  d.settle();
  d.book.join(0, {true, {}});
  CHECK_FALSE(d.book.is_dirty());
  d.ask(1);
  d.done(1);
  CHECK_FALSE(d.answer(1));  // it is asked as before
  CHECK(d.to<wire::gate_sync>(0).size() == 1);
}

TEST_CASE("gates: who chooses the numbers of jobs makes no search long", "[gates]") {
  desk d;
  d.hear(0, 1, wire::role::relay);
  wire::gate_join some;
  for (std::uint64_t i = 1; i <= 60'000; ++i) {
    core::job_id job = i;
    job.high = i;
    some.jobs.push_back({job, 1});
  }
  std::clock_t const began = std::clock();
  d.book.join(0, some);
  CHECK(std::clock() - began < 2 * CLOCKS_PER_SEC);
  CHECK(d.book.rows() == 60'000);
}

TEST_CASE("gates: those who have very many jobs leave room for others", "[gates]") {
  desk d;
  std::uint64_t job = 1000;
  for (std::uint32_t c = 0; c < 5; ++c)
    for (int part = 0; part < 8; ++part) {
      d.hear(c, 1, wire::role::relay);
      wire::gate_join some;
      for (int i = 0; i < 32 * 1024; ++i) some.jobs.push_back({++job, 1});
      d.book.join(c, some);
      d.settle();
    }
  std::size_t const full = d.book.rows();
  for (std::uint64_t own = 1; own <= 1024; ++own) d.join(7, {own, 1});
  CHECK(d.book.rows() == full + 1024);
}

TEST_CASE("gates: what the parent does not take is told ever more seldom", "[gates]") {
  desk d(true);
  d.join(0);
  d.pass(64 * second, {0});
  std::size_t const told = d.to<wire::gate_join>(gate_book::above).size();
  CHECK(told >= 6);
  CHECK(told <= 8);
  d.book.above_anew();  // another parent hears it at once
  d.pass(100 * ms, {0});
  CHECK(d.to<wire::gate_join>(gate_book::above).size() == told + 1);
}

TEST_CASE("gates: a loss is remembered while others fail", "[gates]") {
  desk d;
  constexpr std::uint64_t other = 78;
  for (std::uint32_t c = 0; c < 100; ++c) d.join(c, {other, 1, false, false});
  d.join(0);
  d.settle();
  d.book.join(0, {false, {{hydro, 2, false, false}}});  // its machine was started again
  d.ask(0, 1);
  REQUIRE(d.answer());
  CHECK(d.answer()->error == EIO);
  std::uint64_t counter = 1;
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t c = 0; c < 100; ++c) {
      d.ask_for(other, c, ++counter);
      d.book.done(c, {d.id(counter), EIO, "no"}, d.now);
    }
    d.pass(100 * ms, {0});
  }
  d.ask(0, 1);  // the answer was lost
  CHECK(d.answer()->error == EIO);
}

TEST_CASE("gates: a node that comes by another way asks as before", "[gates]") {
  desk d;
  d.hear(0, 9);
  d.book.join(0, {false, {{hydro, 1, false, false}}});
  d.settle();
  d.book.gone(0);
  d.hear(1, 10, wire::role::relay);  // which has it now
  d.book.join(1, {false, {{hydro, 1, false, false}}});
  d.settle();
  d.ask(1);
  CHECK_FALSE(d.to<wire::gate_sync>(1).empty());
}
