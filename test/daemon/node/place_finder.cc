// SPDX-License-Identifier: Apache-2.0
// How long a node waits for file systems of its site, and what it knows when they do not answer.
#include <catch2/catch.hpp>
#include <future>
#include <set>

#include "base/error.h"
#include "node/place_finder.h"

using namespace sluice;
using Catch::Contains;
using node::patience;

namespace {

constexpr std::int64_t ms = 1'000'000, second = 1000 * ms;

/// A machine on which some paths hang until it is told to go on.
struct machine {
  std::promise<void> go_on;
  std::shared_future<void> wait{go_on.get_future()};
  std::shared_ptr<std::set<std::string>> hung = std::make_shared<std::set<std::string>>();
  std::shared_ptr<std::atomic<int>> looks = std::make_shared<std::atomic<int>>(0);

  node::place_finder::look look() {
    return [wait = wait, hung = hung, looks = looks](std::string const& path) -> policy::place {
      ++*looks;
      if (hung->contains(path)) wait.wait();
      if (path == "/none") throw usage_error("target /none: no such file");
      return {path, 1, 2, 3};
    };
  }
};

}  // namespace

TEST_CASE("node places: a twentieth of the time for one path", "[node]") {
  patience p;
  std::int64_t now = 0, waited = 0;
  for (; now < 600 * second; now += 10 * ms) {
    if (!p.may_wait("/slow", now)) continue;
    waited += patience::longest_ns;
    p.waited("/slow", patience::longest_ns, now);
    CHECK(p.may_wait("/other", now));
  }
  CHECK(waited <= 600 * second / 20 + patience::most_debt_ns + patience::longest_ns);
  CHECK(waited >= 600 * second / 20 - patience::longest_ns);
}

TEST_CASE("node places: who does not answer is not asked again, others are", "[node]") {
  machine m;
  *m.hung = {"/hung", "/also"};
  node::place_finder finder(m.look());
  CHECK(finder.find("/good").path == "/good");
  CHECK_THROWS_WITH(finder.find("/none"), Contains("no such file"));
  CHECK_THROWS_WITH(finder.find("/hung"), Contains("does not answer"));
  int const before = *m.looks;
  CHECK_THROWS_WITH(finder.find("/hung"), Contains("does not answer"));
  CHECK(*m.looks == before);  // somebody waits for it already
  CHECK(finder.find("/good").path == "/good");
  CHECK_THROWS_WITH(finder.find("/also"), Contains("does not answer"));
  m.go_on.set_value();
}

TEST_CASE("node places: a place that was known is taken as it was", "[node]") {
  machine m;
  node::place_finder finder(m.look());
  CHECK(finder.find("/scratch").inode == 2);
  *m.hung = {"/scratch"};
  CHECK(finder.find("/scratch").inode == 2);
  CHECK(finder.find("/scratch").inode == 2);
  m.go_on.set_value();
}
