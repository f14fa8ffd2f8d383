// SPDX-License-Identifier: Apache-2.0
// Gates that come and go: a place is free again at once, and nobody asks all nodes all the time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "gate_desk.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("gates: a child begins so many of a job in a second", "[gates]") {
  bool const of_relay = GENERATE(false, true);
  desk d(of_relay);
  constexpr std::uint64_t own = 78;
  for (std::uint32_t c : {0u, 1u}) d.join(c);
  d.join(0, {own, 1, false, false});
  d.settle();
  std::uint64_t counter = 0;
  auto const begins = [&](std::uint64_t job, std::uint32_t child) {
    d.sent.clear();
    d.ask_for(job, child, ++counter);
    d.settle();
    if (d.answer(child)) return d.answer(child)->error != EBUSY;
    wire::gate_id const gate = d.id(counter);
    if (of_relay) {
      d.book.above_open({gate, 8, 0, ""});
    } else {
      for (std::uint32_t c : {0u, 1u}) d.book.done(c, {gate, 0, ""}, d.now);
    }
    d.settle();
    return true;
  };
  unsigned begun = 0;
  for (std::int64_t const end = d.now + 4 * second; d.now < end; d.now += ms)
    begun += begins(hydro, 0);
  CHECK(begun <= 256 + 4 * 33);
  CHECK(begun >= 256 + 4 * 31);
  CHECK(begins(own, 0));  // another job of it, and another child, have their own
  CHECK(begins(hydro, 1));
  d.now += 20 * second;
  for (int i = 0; i < 200; ++i) CHECK(begins(hydro, 0));
}

TEST_CASE("gates: of many that are due at once each has its turn in a short queue", "[gates]") {
  constexpr std::uint64_t gates = 200;
  constexpr std::size_t room = 16;
  desk d = three_nodes();
  for (std::uint64_t counter = 1; counter <= gates; ++counter) d.ask(0, counter, 600 * second);
  d.now += 3 * second;  // the controller was stopped
  std::set<std::uint64_t> asked;
  for (std::int64_t const end = d.now + 4 * second; d.now < end;) {
    d.sent.clear();
    d.pass(50 * ms, {0, 1, 2});
    auto const syncs = d.to<wire::gate_sync>(2);
    for (std::size_t i = 0; i < std::min(room, syncs.size()); ++i)
      asked.insert(syncs[i].gate.counter);
  }
  CHECK(asked.size() == gates);
}
