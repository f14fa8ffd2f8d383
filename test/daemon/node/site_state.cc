// SPDX-License-Identifier: Apache-2.0
// What a node keeps over kill -9: its lease, overrides, the records of jobs; and policies that
// arrive in parts.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "lib/scratch.h"
#include "node/job.h"
#include "node/site_state.h"
#include "runtime/lease_file.h"

using namespace sluice;

namespace {

using test::scratch;

runtime::kept_lease sample(std::uint64_t n) {
  return {n, n + 3, n + 1, static_cast<std::int64_t>(n) + 2, {{7, {{n, 9}, n * 10, 99}}}};
}

char const* const policy_text = R"({
  "targets": {"scratch": {"path": "/tmp", "capacity": {"metadata": "1000/s"}}},
  "control": {"nodes": "n[1-2]", "escrow": 0.2, "floor": 0.1}
})";

}  // namespace

TEST_CASE("the lease file holds the newest whole record", "[node][files]") {
  scratch const s;
  std::string const path = s.dir + "/lease";
  {
    runtime::lease_file f(path);
    CHECK(!f.read());
    for (std::uint64_t n = 1; n <= 5; ++n) CHECK(f.write(sample(n)));
  }
  runtime::lease_file again(path);
  REQUIRE(again.read());
  CHECK(again.read()->parent == 5);
  CHECK(again.read()->obeyed == 8);
  REQUIRE(again.read()->supply.size() == 1);
  CHECK(again.read()->supply[0].of.value == 50);
  // The newest half torn: the one before counts.
  for (std::uint64_t n = 6; n <= 7; ++n) CHECK(again.write(sample(n)));
  auto const size = std::filesystem::file_size(path);
  int const fd = open(path.c_str(), O_RDWR);
  off_t const newest = static_cast<off_t>(size / 2);  // 7 is odd: the second half
  CHECK(pwrite(fd, "x", 1, newest + 70) == 1);
  CHECK(again.read()->parent == 6);
  CHECK(pwrite(fd, "x", 1, 70) == 1);
  CHECK(!again.read());
  close(fd);
  CHECK(std::filesystem::file_size(path) == size);
}

TEST_CASE("a grant of a parent that nothing was lent to outlives the daemon", "[node][files]") {
  constexpr std::int64_t ms = 1'000'000;
  auto const time = lease::timers_of(100 * ms, 1000 * ms, 0);
  scratch const s;
  node::site_state site("n1");
  site.apply(policy_text, "test");
  std::vector<lease::child::own> const own = {
      {site.supplies()[0].floor, site.supplies()[0].escrow, 1}};
  std::int64_t now = 1'000'000 * ms;
  {
    lease::child c(time, 3);
    c.set_own(own);
    c.booted(now - 60'000 * ms);
    lease::report const r = c.make_report(77, now);
    lease::grant g;
    g.child_incarnation = 3;
    g.parent_incarnation = 9;
    g.t_child = r.t_child;
    g.t_parent = 1;
    g.supply = {{{9, 1}, 40'000, 1000 * ms}};
    REQUIRE(c.on_grant(77, g, now + ms));
    REQUIRE(c.lent_to() == 0);
    REQUIRE(c.held(0, now + 2 * ms) == 40'000);
    runtime::lease_file(s.dir + "/lease").write(runtime::kept_of(c.memory(), site.keys()));
  }
  auto const kept = runtime::lease_file(s.dir + "/lease").read();
  REQUIRE(kept);
  lease::child again(time, 4);
  again.set_own(own);
  now += 10 * ms;
  again.remember(runtime::memory_of(*kept, site.keys()), now);
  CHECK(again.obeyed() == 77);
  CHECK(again.held(0, now) == 40'000);
}

TEST_CASE("a job's record is read back as it was written", "[node][files]") {
  node::job_record r;
  r.uid = 1000;
  r.gid = 100;
  r.name = "train";
  r.qos_class = "gold";
  r.limits = {"open=5/s"};
  r.fixed = {{"open", node::unit_kind::ops, 12345, true}};
  r.granted = {"metadata@scratch"};
  r.joiners = {{77, 88}};
  auto const back = node::read_record(node::to_text(r));
  CHECK(back.uid == 1000);
  CHECK(back.name == "train");
  CHECK(back.fixed[0].rate_q40 == 12345);
  CHECK(back.granted == r.granted);
  CHECK(back.joiners == r.joiners);
  CHECK_THROWS_AS(node::read_record("{}"), error);
  CHECK_THROWS_AS(node::read_record("garbage"), error);
}

TEST_CASE("a supply keeps its number, a node its part", "[node][files]") {
  node::site_state listed("n1"), stranger("n9");
  listed.apply(policy_text, "test");
  stranger.apply(policy_text, "test");
  REQUIRE(listed.supplies().size() == 1);
  CHECK(listed.supplies()[0].escrow == 100'000);
  CHECK(listed.supplies()[0].floor == 50'000);
  CHECK(listed.supplies()[0].trickle == 0);
  CHECK(stranger.supplies()[0].escrow == 0);
  CHECK(stranger.supplies()[0].trickle == 1'000);
  std::uint64_t const hash = listed.hash();
  CHECK_THROWS_AS(listed.apply("{\"targets\": 3}", "test"), error);
  CHECK(listed.hash() == hash);
  listed.apply(R"({"targets": {"a": {"path": "/tmp", "capacity": {"data": "1MB/s"}}}})", "test");
  REQUIRE(listed.supplies().size() == 2);
  CHECK(listed.supplies()[0].of.capacity == 0);
  CHECK(listed.supplies()[1].of.name() == "data@a");
  listed.apply(policy_text, "test");
  CHECK(listed.find_supply("metadata@scratch") == 0u);
  CHECK(listed.supplies()[0].of.capacity == 1'000'000);
}

TEST_CASE("numbers of supplies that nobody uses are given to new ones", "[node][files]") {
  auto const named = [](unsigned n) {
    std::string const target = "t" + std::to_string(n);
    return R"({"targets": {")" + target + R"(": {"path": "/tmp", "capacity": {"data": "1MB/s",
      "metadata": "9/s"}}}})";
  };
  node::site_state site("n1");
  site.apply(named(0), "test");
  site.apply(named(1), "test", {true, false});
  CHECK(site.find_supply("data@t0") == 0u);  // still counted on
  CHECK(site.find_supply("metadata@t0") == std::nullopt);
  CHECK(site.find_supply("data@t1") == 1u);
  CHECK(site.find_supply("metadata@t1") == 2u);
  REQUIRE(site.renewed().size() == 1);
  CHECK(site.renewed()[0].supply == 1);
  CHECK(site.renewed()[0].was.name() == "metadata@t0");
  CHECK(site.keys()[0] == runtime::no_key);
  site.apply(named(0), "test", {false, false, false});
  CHECK(site.find_supply("data@t0") == 0u);  // what comes back finds its own
  CHECK(site.renewed().size() == 1);
  for (unsigned n = 0; n < 10'000; ++n)
    site.apply(named(n), "test", std::vector<bool>(site.supplies().size(), false));
  CHECK(site.supplies().size() <= 4);
}
