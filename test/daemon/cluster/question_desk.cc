// SPDX-License-Identifier: Apache-2.0
// Questions of users of other hosts: neither a node nor one of its users takes all places.
#include "cluster/question_desk.h"

#include <catch2/catch.hpp>
#include <map>

using namespace sluice;

namespace {

struct desk_of {
  std::map<std::uint64_t, std::string> said;
  cluster::question_desk desk{
      [this](std::uint32_t, wire::answer const& a) { said[a.id] = a.text; }};
  std::string name = "login";
  std::uint64_t last_id = 0;

  /// True: it waits, or goes on.
  bool ask(std::uint32_t child, std::uint32_t uid, bool is_relay = false) {
    wire::parent_socket::incoming from = {child, &name, wire::role::node, true, {}, wire::bye{}};
    wire::question q;
    q.id = ++last_id;
    q.uid = uid;
    auto const above = desk.take(from, q, is_relay, true, 0);
    return is_relay ? above.has_value() : !said.contains(last_id);
  }
  int many(std::uint32_t child, std::uint32_t uid, bool is_relay = false) {
    int taken = 0;
    for (int i = 0; i < 300; ++i) taken += ask(child, uid, is_relay) ? 1 : 0;
    return taken;
  }
  void answer_all() {
    while (!desk.is_idle())
      desk.answer_some([](local::peer const& who, std::string const&,
                          std::string const&) { return std::to_string(who.uid); },
                       0);
  }
};

}  // namespace

TEST_CASE("questions: a user leaves places of his node to others", "[questions]") {
  desk_of d;
  CHECK(d.many(1, 1000) == 4);
  CHECK(d.many(1, 1001) == 2);
  CHECK(d.ask(1, 1002));
  CHECK(d.ask(1, 1003));
  CHECK_FALSE(d.ask(1, 1004));  // the node has no more
  CHECK(d.many(2, 1000) == 4);  // another has its own
  d.answer_all();
  CHECK(d.said.at(1) == "1000");
  CHECK(d.many(1, 1000) == 4);
}

TEST_CASE("questions: an answer to an earlier life of a relay is none to the next", "[questions]") {
  desk_of first, next;
  auto const ask = [](desk_of& d, std::int64_t now) {
    wire::parent_socket::incoming from = {1, &d.name, wire::role::node, true, {}, wire::bye{}};
    wire::question q;
    q.id = 7;
    q.uid = 1000;
    return wire::answer{d.desk.take(from, q, true, true, now)->id, "of that time"};
  };
  wire::answer late = ask(first, 1'000'000'000);
  ask(next, 2'000'000'000);
  next.desk.hear(late);
  CHECK(next.said.empty());
  first.desk.hear(late);
  CHECK(first.said.at(7) == "of that time");
}

TEST_CASE("questions: a user leaves places of a relay to others", "[questions]") {
  desk_of d;
  CHECK(d.many(1, 1000, true) + d.many(2, 1000, true) == 32);
  for (std::uint32_t uid = 1001; uid < 1010; ++uid) d.many(uid % 7, uid, true);
  CHECK(d.ask(3, 2000, true));
  CHECK(d.said.at(33).find("try again") != std::string::npos);
}

TEST_CASE("questions: who is answered later keeps his place", "[questions]") {
  desk_of d;
  std::vector<std::uint64_t> tickets;
  auto const serve_later = [&] {
    while (!d.desk.is_idle())
      d.desk.answer_some(
          [&](local::peer const& who, std::string const&, std::string const&) {
            CHECK(who.is_afar);
            tickets.push_back(who.ticket);
            return std::string();
          },
          0);
  };
  CHECK(d.many(1, 1000) == 4);
  d.said.clear();
  serve_later();
  REQUIRE(tickets.size() == 4);
  CHECK(d.said.empty());
  CHECK_FALSE(d.ask(1, 1000));
  d.said.clear();
  d.desk.reply(tickets[2], "done");
  CHECK(d.said == std::map<std::uint64_t, std::string>{{3, "done"}});
  CHECK_FALSE(d.desk.is_waiting(tickets[2]));
  CHECK(d.desk.is_waiting(tickets[3]));
  CHECK(d.ask(1, 1000));
  // The node has told him long since that nobody answers.
  d.desk.forget_old(10'000'000'000);
  CHECK_FALSE(d.desk.is_waiting(tickets[3]));
  d.desk.reply(tickets[3], "done");
  CHECK(d.said.size() == 1);
}
