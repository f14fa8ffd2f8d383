// SPDX-License-Identifier: Apache-2.0
// What was changed is written once for many, and nobody is told of it before.
#include "verbs/kept_answers.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice;
using nlohmann::json;

TEST_CASE("changes are written once in a while, and their answers wait", "[verbs]") {
  constexpr std::int64_t every_ns = verbs::kept_answers::every_ns;
  verbs::kept_answers kept;
  local::peer who = {1, 1, 1, -1};
  CHECK_FALSE(kept.due_ns());
  CHECK(kept.hold(who, {{"job", "looked at"}}) == json({{"job", "looked at"}}));

  unsigned writes = 0;
  std::vector<std::uint64_t> told;
  // A change each millisecond, for a second.
  for (std::int64_t now_ns = 0; now_ns < 1'000'000'000; now_ns += 1'000'000) {
    who.ticket = static_cast<std::uint64_t>(now_ns) + 1;
    kept.changed();
    CHECK(kept.hold(who, {{"job", "a"}}).is_discarded());
    CHECK(kept.take().empty());
    if (*kept.due_ns() > now_ns) continue;
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
  kept.tried(1'000'000'000, true);
  CHECK(told.size() + kept.take().size() == 1000);

  // What cannot be written is told as it is.
  kept.changed();
  CHECK(kept.hold(who, {{"job", "a"}}).is_discarded());
  kept.tried(2'000'000'000, false);
  auto const last = kept.take();
  REQUIRE(last.size() == 1);
  CHECK(json::parse(last[0].text).at("warnings").size() == 1);
  // It is tried again, later; a change in between is not made to wait for that.
  CHECK(kept.due_ns() == 2'000'000'000 + verbs::kept_answers::again_ns);
  kept.changed();
  CHECK(kept.due_ns() == 2'000'000'000 + every_ns);
  kept.tried(3'000'000'000, true);
  CHECK_FALSE(kept.due_ns());
}
