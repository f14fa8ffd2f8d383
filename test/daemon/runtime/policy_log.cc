// SPDX-License-Identifier: Apache-2.0
// The versions of a policy: numbered, kept over a restart, the last twenty, and garbage beside
// them.
#include "runtime/policy_log.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lib/scratch.h"

using namespace sluice;
using runtime::policy_log;

TEST_CASE("policy log: a new text is a version, the same text is none, a restart keeps them") {
  test::scratch const at;
  std::string const dir = at.dir + "/policies";
  {
    policy_log log(dir);
    CHECK(log.answer({})["versions"].empty());
    CHECK(log.note("one", {"/etc/site.json"}, 100));
    CHECK(log.note("one", {"/etc/site.json"}, 200));
    CHECK(log.note("two", {"sluice policy apply", 1000}, 300));
  }
  std::ofstream(dir + "/7.json") << "{\"version\": 8}";
  std::ofstream(dir + "/x.json") << "garbage";
  std::filesystem::create_directory(dir + "/5.json");
  policy_log log(dir);
  REQUIRE(log.versions().size() == 2);
  CHECK(log.note("two", {"/etc/site.json"}, 400));
  auto const rows = log.answer({})["versions"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["version"] == 2);
  CHECK(rows[0]["by_uid"] == 1000);
  CHECK(rows[0]["since_s"] == 300);
  CHECK(rows[1]["by_uid"] == nullptr);
  CHECK(rows[1]["from"] == "/etc/site.json");
  CHECK(log.answer({{"version", 1}})["text"] == "one");
  CHECK_THROWS_WITH(log.answer({{"version", 3}}), Catch::Contains("no version 3"));
}

TEST_CASE("policy log: the last twenty are kept, with their numbers") {
  test::scratch const at;
  policy_log log(at.dir + "/policies");
  for (int i = 1; i <= 30; ++i) CHECK(log.note(std::to_string(i), {"f"}, i));
  policy_log const again(at.dir + "/policies");
  REQUIRE(again.versions().size() == policy_log::most_versions);
  CHECK(again.versions().front().number == 11);
  CHECK(again.versions().back().number == 30);
  CHECK(again.versions().back().text == "30");
}

TEST_CASE("policy log: where nothing can be written it says so, and still knows this run's") {
  policy_log log("/proc/none/policies");
  CHECK_FALSE(log.note("one", {"f"}, 1));
  CHECK(log.versions().size() == 1);
}
