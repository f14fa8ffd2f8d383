// SPDX-License-Identifier: Apache-2.0
// What people set for a job ends with it, and not while one of its nodes cannot be heard: in
// virtual time, below a cluster and below a relay.
#include "cluster/change_keeper.h"

#include <catch2/catch.hpp>

#include "cluster_world.h"
#include "wire/codec.h"

using namespace cluster_world;

namespace {

shape one_class() {
  shape s;
  s.nodes = 2;
  s.classes = {{{.weight = 1000}}};
  return s;
}

/// Two nodes that say every ten seconds which jobs they have, as a relay does, and the controller
/// of them all with what people set.
struct town : world {
  explicit town(bool has_relay) : world(one_class(), 1) {
    add_cluster();
    unsigned const parent = has_relay ? add_relay(0) : 0;
    for (unsigned i = 0; i < 2; ++i) add_node(parent);
    each_step = [this] { turn(); };
  }

  void turn() {
    if (now % (10'000 * ms) == 0) say_jobs();
    if (now % (1000 * ms) != 0) return;
    double const s = static_cast<double>(now) / 1e9;
    if (keeper.take_back(top().who(), now, {s, s})) top().set_overrides(&keeper.book());
  }
  void say_jobs() {
    for (auto const& n : nodes)
      if (!n->cut && n->find(key) != nullptr) say(*n);
    for (auto const& s : stations)
      if (s->is_relay) top().jobs(s->number, {cluster::jobs_below(s->arbiter->who(), true)}, now);
  }
  void say(node const& n) {
    wire::job_entry e;
    e.job = key;
    e.uid = 1000;
    e.name = "wide";
    e.class_key = 1;
    e.qos_class = "class1";
    e.processes = 1;
    stations[n.station]->arbiter->jobs(n.number, {{e}}, now);
  }

  void start(unsigned n) { nodes[n]->add(key, 1, {500 * k}); }
  void pause() {
    keeper.book().pause(key, 1000, "wide", {});
    top().set_overrides(&keeper.book());
  }
  void set_limit(rate value) {
    verbs::limit_override limit;
    limit.channel = top().policy().supplies[0].name;
    limit.value = value;
    keeper.book().set_limit(key, 1000, "wide", limit);
    top().set_overrides(&keeper.book());
  }
  bool is_kept() { return keeper.book().find(key) != nullptr; }

  core::job_id key = wire::job_key(1000, "wide");
  runtime::logger log{runtime::level::error, [](std::string_view) {}, [] { return 0; }};
  cluster::change_keeper keeper{cluster::change_files("/nowhere"), log};
};

}  // namespace

TEST_CASE("overrides: a node that is cut off has its job still, whoever gave it up before",
          "[cluster][overrides]") {
  bool const has_relay = GENERATE(false, true);
  INFO("below a relay: " << has_relay);
  town w(has_relay);
  w.start(0);
  w.start(1);
  w.run(20'000 * ms);
  w.set_limit(2 * k);
  w.run(1000 * ms);
  REQUIRE(w.allowed(w.key, 0) <= 2 * k);
  w.nodes[0]->remove(w.key);
  w.run(5000 * ms);
  w.nodes[1]->cut = true;
  w.run(400'000 * ms);
  CHECK(w.is_kept());
  w.nodes[1]->cut = false;
  w.run(150'000 * ms);
  CHECK(w.is_kept());
  CHECK(w.allowed(w.key, 0) <= 2 * k);
  w.nodes[1]->remove(w.key);
  w.run(110'000 * ms);
  CHECK(w.is_kept());
  w.run(30'000 * ms);
  CHECK_FALSE(w.is_kept());
}

TEST_CASE("overrides: a job of one node that is cut off stays paused", "[cluster][overrides]") {
  bool const has_relay = GENERATE(false, true);
  INFO("below a relay: " << has_relay);
  town w(has_relay);
  w.start(1);
  w.run(20'000 * ms);
  w.pause();
  w.run(1000 * ms);
  REQUIRE(w.allowed(w.key, 0) == 0);
  w.nodes[1]->cut = true;
  w.run(174'000 * ms);
  CHECK(w.is_kept());
  std::uint32_t const row = w.top().who().job_of(w.key);
  CHECK((row == cluster::roster::nobody || !w.top().who().jobs[row].is_here()));
  w.nodes[1]->cut = false;
  w.run(15'000 * ms);
  CHECK(w.is_kept());
  CHECK(w.allowed(w.key, 0) == 0);
  CHECK(w.top().who().jobs[w.top().who().job_of(w.key)].is_here());
}

TEST_CASE("overrides: what was taken back counts nothing towards what is set later",
          "[cluster][overrides]") {
  town w(false);
  auto const take_back = [&](time_ns at) {
    double const s = static_cast<double>(at) / 1e9;
    return w.keeper.take_back(w.top().who(), at, {s, s});
  };
  w.pause();
  CHECK_FALSE(take_back(w.now));
  w.keeper.book().forget(w.key);
  CHECK_FALSE(take_back(w.now + 1000 * ms));
  w.pause();
  CHECK_FALSE(take_back(w.now + 200'000'000 * ms));
  CHECK(w.is_kept());
}

TEST_CASE("overrides: a node that comes back for a moment gives nothing up",
          "[cluster][overrides]") {
  bool const has_relay = GENERATE(false, true);
  INFO("below a relay: " << has_relay);
  town w(has_relay);
  w.start(1);
  w.run(20'000 * ms);
  w.pause();
  w.nodes[1]->cut = true;
  w.run(100'500 * ms);
  w.nodes[1]->jobs.clear();  // it has not named them yet
  w.nodes[1]->cut = false;
  w.run(3000 * ms);
  w.nodes[1]->cut = true;
  w.run(200'000 * ms);
  CHECK(w.is_kept());
  w.nodes[1]->cut = false;  // and this time it says that they ended
  w.run(240'000 * ms);
  CHECK_FALSE(w.is_kept());
}
