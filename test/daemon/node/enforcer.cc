// SPDX-License-Identifier: Apache-2.0
// What is written into the curves of real segments: by an orphan in each mode, in shadow mode, and
// for jobs that no policy reaches.
#include "node/enforcer.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "core/token_bucket.h"
#include "node/clock.h"
#include "segment/run_dir.h"

using namespace sluice;
using node::rate;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t parent = 77;

/// A node below a parent, with the jobs of its own user.
struct world {
  std::string dir;
  runtime::logger log{runtime::level::error, [](std::string_view) {}, [] { return 0; }};
  node::site_state site{"n1"};
  std::unique_ptr<node::job_table> jobs;
  verbs::override_book overrides;
  node::enforcer rates{true};
  lease::child child{lease::timers_of(100 * ms, 1000 * ms, 0), 3};
  node::moment at = node::now();
  std::uint64_t counter = 0;

  world() {
    char name[] = "/tmp/sluice-enforcer.XXXXXX";
    dir = mkdtemp(name);
    std::filesystem::create_directories(segment::jobs_dir(dir));
    std::filesystem::create_directories(dir + "/data");
    jobs = std::make_unique<node::job_table>(dir, dir + "/none.so", "n1", log);
    child.booted(at.boot_ns - 60'000 * ms);
  }
  ~world() {
    jobs.reset();
    std::filesystem::remove_all(dir);
  }

  /// 1000 operations a second on two nodes: 50/s of floor and 100/s of escrow each.
  void use(std::string const& control, std::string const& target = "t") {
    site.apply(R"({"targets": {")" + target + R"(": {"path": ")" + dir +
                   R"(/data", "capacity": {"metadata": "1000/s"}}},
                   "channels": [{"name": "opens", "match": {"call": "open", "target": ")" +
                   target + R"("},
                                 "limit": "5/s"}],
                   "control": {"nodes": "n[1-2]", "escrow": 0.2, "floor": 0.1)" +
                   control + "}}",
               "test");
    child.set_own(
        std::vector<lease::child::own>{{site.supplies()[0].floor, site.supplies()[0].escrow, 1}});
    rates.use(site);
    for (auto const& j : jobs->all()) node::job_table::bind_streams(*j, site, at.mono_ns);
  }
  node::job& join(node::join_request const& request) {
    return *jobs->join({geteuid(), getegid(), getpid(), -1}, request, site).who;
  }
  void wait(std::int64_t span_ns) {
    at.boot_ns += span_ns;
    at.mono_ns += span_ns;
  }
  void grant(rate value) {
    lease::report const r = child.make_report(parent, at.boot_ns);
    lease::grant g;
    g.child_incarnation = 3;
    g.parent_incarnation = 9;
    g.t_child = r.t_child;
    g.t_parent = 1;
    g.supply = {{{9, ++counter}, value, 1000 * ms}};
    REQUIRE(child.on_grant(parent, g, at.boot_ns));
    child.make_report(parent, at.boot_ns);
  }
  void apply() { rates.apply(site, *jobs, overrides, child, {}, at); }
  core::curve_settings curve(node::job& j) {
    return core::current(as_shared((*j.map).bucket[j.streams.at(0).channel]));
  }
  rate pays(node::job& j) { return node::rate_of_q40(node::unit_kind::ops, curve(j).rate_q40); }
};

node::join_request named(char const* name) {
  node::join_request r;
  r.name = name;
  return r;
}

}  // namespace

TEST_CASE("orphans: safe falls to the node's own, keep keeps, open opens", "[node][enforcer]") {
  for (std::string const mode : {"safe", "keep", "open"}) {
    CAPTURE(mode);
    world w;
    w.use(R"(, "orphans": ")" + mode + "\"");
    node::job& j = w.join(named("j"));
    w.grant(400'000);
    w.apply();
    CHECK(w.pays(j) == Approx(450'000).epsilon(0.01));  // the grant and the floor
    // What the stage does by itself if the daemon dies here.
    CHECK((w.curve(j).lease_end_ns == 0) == (mode == "keep"));
    CHECK(w.curve(j).after_lease == (mode == "open" ? 1u : 0u));
    w.wait(60'000 * ms);
    REQUIRE(w.child.is_orphan(w.at.boot_ns));
    w.apply();
    if (mode == "safe") CHECK(w.pays(j) <= 150'000);
    if (mode == "keep") CHECK(w.pays(j) == Approx(450'000).epsilon(0.01));
    if (mode == "open") CHECK(w.pays(j) == Approx(double(node::unlimited(node::unit_kind::ops))));
  }
}

TEST_CASE("the limit that a parent tells replaces the class's while its grant lasts",
          "[node][enforcer]") {
  world w;
  w.use(R"(, "default_class": "c"}, "classes": {"c": {"t": {"metadata": {"limit": "100/s"}}})");
  node::job& j = w.join(named("j"));
  node::stream& s = j.streams[0];
  w.grant(400'000);
  s.granted = 400'000;
  w.rates.set_split(true);
  w.apply();
  CHECK(w.pays(j) == Approx(100'000).epsilon(0.01));  // it says nothing of this one yet
  s.limit = policies::unbounded;                      // by hand it has another class
  w.apply();
  CHECK(w.pays(j) == Approx(450'000).epsilon(0.01));
  s.limit = 0, s.granted = 0;  // paused
  w.apply();
  CHECK(w.pays(j) == 0);
  w.wait(60'000 * ms);
  REQUIRE(w.child.is_orphan(w.at.boot_ns));
  w.apply();
  CHECK(w.pays(j) == Approx(15'000).epsilon(0.01));  // its part of the class's
}

TEST_CASE("a job that was paused here stays so where the policy opens", "[node][enforcer]") {
  world w;
  w.use(R"(, "orphans": "open")");
  node::job& j = w.join(named("j"));
  w.overrides.pause(j.key, j.record.uid, j.record.name, {});
  w.grant(400'000);
  w.apply();
  CHECK(w.pays(j) == 0);
  CHECK(w.curve(j).after_lease == 0);  // without a daemon
}

TEST_CASE("orphans that keep obey a parent that takes away", "[node][enforcer]") {
  world w;
  w.use(R"(, "orphans": "keep")");
  node::job& j = w.join(named("j"));
  w.grant(400'000);
  w.apply();
  w.wait(10 * ms);
  w.grant(0);
  w.apply();
  CHECK(w.pays(j) <= 50'000);
  // After a restart the file says what was held last.
  w.wait(60'000 * ms);
  w.rates.recall_kept({300'000});
  w.apply();
  CHECK(w.pays(j) == Approx(350'000).epsilon(0.01));
}

TEST_CASE("a watched job may use what it would get if it asked, and takes it from nobody",
          "[node][enforcer]") {
  for (bool const is_watched : {true, false}) {
    CAPTURE(is_watched);
    world w;
    w.use("");
    node::job& busy = w.join(named("busy"));
    node::join_request request = named("idle");
    request.monitor = is_watched;
    node::job& idle = w.join(request);
    busy.streams[0].last.served = 150'000;
    busy.streams[0].last.blocked_ppm = 1'000'000;
    w.wait(60'000 * ms);
    REQUIRE(w.child.is_orphan(w.at.boot_ns));  // the node decides, over 150/s
    w.apply();
    CHECK(w.pays(busy) > 100'000);
    if (is_watched)
      CHECK(w.pays(idle) == Approx(75'000).epsilon(0.01));
    else
      CHECK(w.pays(idle) < 50'000);
    CHECK(w.rates.standing()[0].granted <= 150'001);
    idle.streams[0].last.served = 400'000;
    CHECK(idle.streams[0].beyond() == (is_watched ? Approx(325'000).epsilon(0.01) : Approx(0)));
  }
}

TEST_CASE("a policy that is not enforced delays nobody and counts", "[node][enforcer]") {
  world w;
  w.use(R"(, "enforce": false)");
  node::job& j = w.join(named("j"));
  w.grant(100'000);
  j.streams[0].last.served = 400'000;
  w.apply();
  CHECK(w.pays(j) == Approx(double(node::unlimited(node::unit_kind::ops))));
  CHECK(j.streams[0].share == Approx(150'000).epsilon(0.01));
  CHECK(j.streams[0].beyond() == Approx(250'000).epsilon(0.01));
  w.overrides.pause(j.key, j.record.uid, j.record.name, {});
  w.apply();
  CHECK(w.pays(j) == 0);  // what a person says holds
}

TEST_CASE("what a policy shares no more limits nobody, also after a restart", "[node][enforcer]") {
  double const all = double(node::unlimited(node::unit_kind::ops));
  world w;
  w.use("");
  node::job& j = w.join(named("j"));
  w.grant(400'000);
  w.apply();
  w.use("", "u");
  w.apply();
  CHECK(w.pays(j) == Approx(all));
  CHECK(w.curve(j).lease_end_ns == 0);
  w.use("");
  w.apply();
  CHECK(w.pays(j) <= 450'000);
  node::job_table later(w.dir, w.dir + "/none.so", "n1", w.log);
  node::site_state site("n1");
  site.apply(R"({"targets": {"u": {"path": "/", "capacity": {"metadata": "9/s"}}}})", "test");
  later.adopt(site);
  REQUIRE(later.all().size() == 1);
  CHECK(later.all()[0]->streams.empty());
  CHECK(w.pays(j) == Approx(all));
}

TEST_CASE("an operator may leave the policy's channels out", "[node][enforcer]") {
  world w;
  w.use("");
  node::join_request bare = named("bare");
  bare.policy_channels = false;
  CHECK(w.join(named("whole")).fixed.size() == 1);
  CHECK(w.join(bare).fixed.empty());
  CHECK(w.join(bare).streams.size() == 1);
  bare.name = "theirs";
  local::peer const other = {geteuid() + 1, getegid(), getpid(), -1};
  CHECK_THROWS_AS(w.jobs->join(other, bare, w.site), error);
}

TEST_CASE("a job that began before the policy has no streams", "[node][enforcer]") {
  world w;
  node::job& j = w.join(named("early"));
  w.use("");
  CHECK(j.streams.empty());
  CHECK(node::not_governed(w.site, j) == std::vector<std::string>{"metadata@t"});
  CHECK(node::not_governed(w.site, w.join(named("late"))).empty());
  j.record.left_out = {"t"};
  CHECK(node::not_governed(w.site, j).empty());
}
