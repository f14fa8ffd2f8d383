// SPDX-License-Identifier: Apache-2.0
// What was changed is written once for many, and nobody is told of it before.
#include "verbs/kept_answers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>

using namespace sluice;
using nlohmann::json;

namespace {

json look(verbs::kept_answers& kept, local::peer const& who, json const& answer) {
  return kept.hold(who, [&] { return answer; });
}
json change(verbs::kept_answers& kept, local::peer const& who, json const& answer) {
  return kept.hold(who, [&] { return kept.changed(), answer; });
}

}  // namespace

TEST_CASE("changes are written once in a while, and their answers wait", "[verbs]") {
  constexpr std::int64_t every_ns = verbs::kept_answers::every_ns;
  verbs::kept_answers kept;
  local::peer who = {1, 1, 1, -1};
  CHECK_FALSE(kept.due_ns());
  CHECK(look(kept, who, {{"job", "looked at"}}) == json({{"job", "looked at"}}));

  unsigned writes = 0;
  std::vector<std::uint64_t> told;
  // A change each millisecond, for a second.
  for (std::int64_t now_ns = 0; now_ns < 1'000'000'000; now_ns += 1'000'000) {
    who.ticket = static_cast<std::uint64_t>(now_ns) + 1;
    CHECK(change(kept, who, {{"job", "a"}}).is_discarded());
    CHECK(kept.take().empty());
    if (*kept.due_ns() > now_ns) continue;
    kept.begin();
    kept.tried(now_ns, true);
    ++writes;
    for (auto const& t : kept.take()) {
      CHECK(json::parse(t.text) == json({{"job", "a"}}));
      told.push_back(t.ticket);
    }
  }
  CHECK(writes == 1'000'000'000 / every_ns);
  CHECK(told.size() > 900);
  CHECK(std::is_sorted(told.begin(), told.end()));
  // The rest is due at an end.
  CHECK(kept.due_ns().has_value());
  kept.begin();
  kept.tried(1'000'000'000, true);
  CHECK(told.size() + kept.take().size() == 1000);

  // What cannot be written is told as it is.
  CHECK(change(kept, who, {{"job", "a"}}).is_discarded());
  kept.begin();
  kept.tried(2'000'000'000, false);
  auto const last = kept.take();
  REQUIRE(last.size() == 1);
  CHECK(json::parse(last[0].text).at("warnings").size() == 1);
  // It is tried again, later; a change in between is not made to wait for that.
  CHECK(kept.due_ns() == 2'000'000'000 + verbs::kept_answers::again_ns);
  kept.changed();
  CHECK(kept.due_ns() == 2'000'000'000 + every_ns);
  kept.begin();
  kept.tried(3'000'000'000, true);
  CHECK_FALSE(kept.due_ns());
}

TEST_CASE("changes while it is written wait for the next time", "[verbs]") {
  verbs::kept_answers kept;
  local::peer near = {1, 1, 1, -1}, afar = {1, 1, 1, -1};
  afar.is_afar = true;
  auto const ask = [&](local::peer& who, std::uint64_t ticket) {
    who.ticket = ticket;
    CHECK(change(kept, who, {{"job", "a"}}).is_discarded());
  };
  ask(near, 1);
  kept.begin();
  CHECK_FALSE(kept.due_ns());
  ask(near, 2);
  ask(afar, 1);
  ask(near, 3);
  CHECK_FALSE(kept.due_ns());  // one at a time
  CHECK(kept.take().empty());
  kept.forget_if([](std::uint64_t ticket, bool is_afar) { return ticket == 3 && !is_afar; });

  kept.tried(1'000'000'000, false);
  auto first = kept.take();
  REQUIRE(first.size() == 1);
  CHECK(first[0].ticket == 1);
  CHECK(json::parse(first[0].text).contains("warnings"));
  CHECK(kept.due_ns() == 1'000'000'000 + verbs::kept_answers::every_ns);

  kept.begin();
  kept.tried(2'000'000'000, true);
  auto const second = kept.take();
  REQUIRE(second.size() == 2);
  CHECK(second[0].ticket == 2);
  CHECK_FALSE(second[0].is_afar);
  CHECK(second[1].ticket == 1);
  CHECK(second[1].is_afar);
  CHECK(json::parse(second[1].text) == json({{"job", "a"}}));

  // What nobody asked for makes nobody wait.
  kept.changed_unasked();
  CHECK(look(kept, near, {{"job", "b"}}) == json({{"job", "b"}}));
  CHECK(kept.due_ns() == 2'000'000'000 + verbs::kept_answers::every_ns);
}

TEST_CASE("who is refused after a change makes nobody wait", "[verbs]") {
  verbs::kept_answers kept;
  local::peer const who = {1, 1, 1, -1};
  auto const refused = [&]() -> json {
    kept.changed();
    throw std::runtime_error("refused");
  };
  CHECK_THROWS(kept.hold(who, refused));
  CHECK(kept.due_ns().has_value());  // it is written all the same
  kept.begin();
  kept.tried(1, true);
  CHECK(look(kept, who, {{"job", "b"}}) == json({{"job", "b"}}));
}
