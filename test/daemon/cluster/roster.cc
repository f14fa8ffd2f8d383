// SPDX-License-Identifier: Apache-2.0
// What children may say of jobs: only of their own, nothing that makes a class swing, and nothing
// that grows without end. And what people set for a job ends with it.
#include "cluster/roster.h"

#include <catch2/catch.hpp>
#include <string>

#include "cluster/absences.h"
#include "runtime/address.h"
#include "wire/codec.h"

using namespace sluice;
using cluster::roster;

namespace {

constexpr std::int64_t ms = 1'000'000, cycle = 100 * ms;
constexpr std::int64_t begin = 100'000 * ms;

cluster::policy_table one_supply() {
  cluster::policy_table p;
  cluster::supply_row row;
  row.name = "metadata@t";
  row.key = 7;
  row.capacity = 1'000'000;
  p.supplies.push_back(row);
  p.classes.push_back({0, "", {{}}});
  for (char const* name : {"gold", "bronze"})
    p.classes.push_back({wire::class_key(name), name, {{}}});
  return p;
}

wire::job_entry entry(std::uint32_t uid, std::string const& name, std::string const& qos_class) {
  wire::job_entry e;
  e.job = wire::job_key(uid, name);
  e.uid = uid;
  e.name = name;
  e.qos_class = qos_class;
  e.class_key = wire::class_key(qos_class);
  return e;
}

/// Two nodes below one controller.
struct bench : roster {
  bench() : roster(one_supply()) {
    for (std::uint32_t c : {0u, 1u, 2u}) meet(c, 1).live = true;
  }
  void list(std::uint32_t c, wire::job_entry const& e) { take(c, wire::job_list{{e}}, now); }
  std::string class_of(core::job_id key) const {
    return policy().classes[jobs[job_of(key)].row].name;
  }
  std::int64_t now = begin;
};

}  // namespace

TEST_CASE("roster: a child cannot speak of a job under another name", "[cluster][roster]") {
  bench r;
  wire::job_entry const mine = entry(1000, "4711", "gold");
  r.list(0, mine);
  wire::job_entry stolen = entry(2000, "x", "bronze");
  stolen.job = mine.job;
  r.list(1, stolen);
  cluster::job const& j = r.jobs[r.job_of(mine.job)];
  CHECK(j.uid == 1000);
  CHECK(j.name == "4711");
  CHECK(r.class_of(mine.job) == "gold");
  CHECK(r.children[1].jobs.empty());
}

TEST_CASE("roster: jobs whose old keys were one are two", "[cluster][roster]") {
  bench r;
  wire::job_entry const hers = entry(64001, "hydro", "gold");
  wire::job_entry const his = entry(64002, "aodmPSQrqiUW1S_ITgCAeUEjb", "bronze");
  r.list(0, hers);
  r.list(0, his);
  REQUIRE(r.children[0].jobs.size() == 2);
  CHECK(r.jobs[r.job_of(hers.job)].uid == 64001);
  CHECK(r.jobs[r.job_of(his.job)].uid == 64002);
  CHECK(r.class_of(hers.job) == "gold");
  CHECK(r.class_of(his.job) == "bronze");
}

TEST_CASE("roster: nodes that differ do not make a class swing", "[cluster][roster]") {
  bench r;
  wire::job_entry const gold = entry(1000, "4711", "gold"), bronze = entry(1000, "4711", "bronze");
  r.list(0, gold);
  for (unsigned i = 0; i < 6; ++i) {
    r.list(i % 2, i % 2 == 0 ? gold : bronze);
    CHECK(r.class_of(gold.job) == "gold");
  }
  r.list(2, bronze);  // now most say so, and that is not a matter of who spoke last
  for (unsigned i = 0; i < 6; ++i) {
    r.list(i % 2, i % 2 == 0 ? gold : bronze);
    CHECK(r.class_of(gold.job) == "bronze");
  }
  r.clear(r.children[1]);
  r.clear(r.children[2]);
  r.list(0, gold);
  CHECK(r.class_of(gold.job) == "gold");
}

TEST_CASE("roster: one child that names another's job can only help it", "[cluster][roster]") {
  bench r;
  bool const is_first = GENERATE(true, false);
  std::string const lie = GENERATE("scavenger", "poor", "light", "unheard-of");
  wire::job_entry const mine = entry(1000, "4711", "gold"), his = entry(1000, "4711", lie);
  cluster::policy_table p = one_supply();
  p.classes[1].by_supply = {{.weight = 3000, .reservation = 1000}};
  p.classes.push_back({wire::class_key("scavenger"), "scavenger", {{.limit = 5}}});
  p.classes.push_back({wire::class_key("poor"), "poor", {{.weight = 9000}}});
  p.classes.push_back({wire::class_key("light"), "light", {{.weight = 1, .reservation = 1000}}});
  r.set_policy(p);
  if (is_first) r.list(1, his);
  r.list(0, mine);
  if (!is_first) r.list(1, his);
  CHECK(r.class_of(mine.job) == "gold");
  r.silence(r.children[0]);  // a moment without the network
  r.list(1, his);
  CHECK(r.class_of(mine.job) == "gold");
  CHECK(r.jobs[r.job_of(mine.job)].is_here());
  r.silence(r.children[1]);
  CHECK_FALSE(r.jobs[r.job_of(mine.job)].is_here());
  r.list(0, mine);
  CHECK(r.jobs[r.job_of(mine.job)].is_here());
  for (std::uint32_t c : {0u, 1u}) r.expire(r.children[c], r.now + 30'000 * ms, cycle);
  CHECK(r.job_of(mine.job) == roster::nobody);
}

TEST_CASE("roster: before any list, streams of a job get what gives it more", "[cluster][roster]") {
  bench r;
  cluster::policy_table p = one_supply();
  p.classes[2].by_supply = {{.limit = 5}};
  r.set_policy(p);
  wire::job_entry const job = entry(1000, "4711", "gold");
  auto const name = [&](std::uint32_t c, char const* qos_class) {
    wire::report said;
    said.supplies = {7};
    said.lease.supply = {{}};
    said.streams.emplace_back().job = job.job;
    said.streams.back().class_key = wire::class_key(qos_class);
    r.take(c, said, ++r.now);
  };
  bool const is_first = GENERATE(true, false);
  name(0, is_first ? "bronze" : "gold");
  name(1, is_first ? "gold" : "bronze");
  CHECK(r.class_of(job.job) == "gold");
  r.clear(r.children[is_first]);
  r.list(!is_first, entry(1000, "4711", "bronze"));  // a list decides
  CHECK(r.class_of(job.job) == "bronze");
}

TEST_CASE("roster: a job is watched when most of its children say so", "[cluster][roster]") {
  bench r;
  wire::job_entry honest = entry(1000, "job", "gold"), watched = honest;
  honest.processes = watched.processes = 2;
  watched.watched = true;
  r.list(0, watched);
  std::uint32_t const row = r.job_of(honest.job);
  CHECK(r.totals()[row].is_watched());
  r.list(1, honest);
  CHECK_FALSE(r.totals()[row].is_watched());
  r.list(2, watched);
  CHECK(r.totals()[row].is_watched());
  r.list(0, honest);
  CHECK_FALSE(r.totals()[row].is_watched());
  CHECK(r.totals()[row].processes == 6);
}

TEST_CASE("roster: job lists of a node stay bounded", "[cluster][roster]") {
  bench r;
  for (unsigned i = 0; i < 50; ++i) {
    wire::job_list l;
    for (unsigned n = 0; n < 500; ++n)
      l.jobs.push_back(entry(1000, std::to_string(i) + "-" + std::to_string(n), "gold"));
    r.take(0, l, r.now);
  }
  CHECK(r.children[0].jobs.size() <= 1024);
  CHECK(r.jobs.size() <= 1024);
  r.expire(r.children[0], r.now + 30'000 * ms, cycle);
  CHECK(r.children[0].jobs.empty());
}

TEST_CASE("roster: one child neither hides nor makes up the processes of others",
          "[cluster][roster]") {
  bench r;
  auto const says = [&](std::uint32_t c, std::uint32_t processes, std::uint32_t escaped) {
    wire::job_entry e = entry(1000, "4711", "gold");
    e.processes = processes, e.escaped = escaped;
    r.list(c, e);
  };
  says(0, 8, 3);
  says(1, ~0u - 7, ~0u - 2);  // to 2^32 with those
  CHECK(r.totals()[0].processes == 8 + 4096);
  CHECK(r.totals()[0].escaped == 3 + 4096);
  r.children[1].is_relay = true;
  says(1, 5000, 5000);
  CHECK(r.totals()[0].processes == 5008);
  for (std::uint32_t c = 1; c < 20; ++c) {  // more than 32 bits hold
    r.meet(c, 1).is_relay = true;
    says(c, ~0u, ~0u);
  }
  CHECK(r.totals()[0].processes == 8 + 19 * (std::uint64_t{4096} << 16));
  CHECK(r.totals()[0].escaped == 3 + 19 * (std::uint64_t{4096} << 16));
}

TEST_CASE("roster: a node was served no more than a machine can do", "[cluster][roster]") {
  bench r;
  wire::report said;
  said.supplies = {7};
  said.lease.supply = {{}};
  said.streams.emplace_back().job = entry(1000, "4711", "gold").job;
  auto const served = [&](std::uint64_t says) {
    said.streams[0].served = says;
    r.take(0, said, ++r.now);
    return r.children[0].streams[0].served;
  };
  std::uint64_t const most = 256 * std::uint64_t{5'000'000'000};  // of calls, milli-tokens
  CHECK(served(most - 1) == most - 1);
  CHECK(served(std::uint64_t{1} << 48) == most);
  r.children[0].is_relay = true;
  said.streams[0].nodes = 10;
  CHECK(served(std::uint64_t{1} << 48) == 10 * most);
  said.streams[0].nodes = ~0u;
  CHECK(served(std::uint64_t{1} << 56) == std::uint64_t{1} << 54);
}

TEST_CASE("roster: a job ends with its last stream, and not before", "[cluster][roster]") {
  for (bool const is_relay : {false, true}) {
    bench r;
    r.children[0].is_relay = is_relay;
    std::vector<wire::job_entry> jobs;
    wire::report whole;
    whole.supplies = {7};
    whole.lease.supply = {{}};
    for (char const* name : {"stays", "ends", "other"}) {
      jobs.push_back(entry(1000, name, "gold"));
      r.list(0, jobs.back());
      whole.streams.emplace_back().job = jobs.back().job;
    }
    r.list(0, entry(1000, "streamless", "gold"));
    r.list(1, jobs[2]);
    r.take(0, whole, ++r.now);
    wire::report acknowledges = whole;
    acknowledges.same_streams = true;
    acknowledges.streams.clear();
    r.take(0, acknowledges, ++r.now);
    REQUIRE(r.children[0].jobs.size() == 4);
    whole.streams.resize(1);
    r.take(0, whole, ++r.now);
    CHECK(r.children[0].jobs.size() == 2);
    CHECK(r.job_of(jobs[0].job) != roster::nobody);
    CHECK(r.job_of(jobs[1].job) == roster::nobody);
    CHECK(r.job_of(jobs[2].job) != roster::nobody);
    CHECK(r.children[1].jobs.size() == 1);
    whole.streams.clear();
    r.take(0, whole, ++r.now);
    CHECK(r.job_of(jobs[0].job) == roster::nobody);
    r.list(0, jobs[1]);  // it comes again
    CHECK(r.job_of(jobs[1].job) != roster::nobody);
  }
}

TEST_CASE("roster: a report without room for all its streams ends no job", "[cluster][roster]") {
  bench r;
  bool const is_relay = GENERATE(false, true);
  r.children[0].is_relay = is_relay;
  wire::report full;
  full.supplies = {7};
  full.lease.supply = {{}};
  core::job_id key;
  while (wire::has_room_left(full, is_relay ? wire::role::relay : wire::role::node)) {
    ++key.low;
    full.streams.emplace_back().job = key;
  }
  wire::job_entry const last = entry(1000, "last", "gold");
  full.streams.back().job = last.job;
  r.list(0, last);
  r.take(0, full, ++r.now);
  full.streams.back().job = key;
  r.take(0, full, ++r.now);
  CHECK(r.children[0].jobs.size() == 1);
}

TEST_CASE("roster: what a child held and never acknowledges ends with its grants",
          "[cluster][roster]") {
  bool const is_relay = GENERATE(false, true);
  unsigned const at_a_time = is_relay ? 12'000 : 1000;
  bench r;
  r.children[0].is_relay = is_relay;
  core::job_id key;
  for (unsigned i = 1; i <= 50; ++i, r.now += 10 * ms) {
    wire::report said;
    said.lease.child_incarnation = 1;
    said.lease.t_child = r.now;
    said.lease.supply = {{}};
    said.supplies = {7};
    for (unsigned n = 0; n < at_a_time; ++n) {
      said.streams.emplace_back();
      said.streams.back().job = ++key.low;
    }
    r.take(0, said, r.now);
    r.children[0].given_until = r.now + 1000 * ms;
    for (cluster::stream& s : r.children[0].streams) r.sent(s, 1);
  }
  CHECK(r.children[0].ghosts.size() <= (is_relay ? 40'000 : 2000));
  CHECK(r.jobs.size() <= (is_relay ? 60'000 : 4000));
  CHECK(r.expire(r.children[0], r.now + 1000 * ms, cycle));
  CHECK(r.children[0].ghosts.empty());
  std::uint64_t held = 0;
  for (cluster::flow const& f : r.flows) held += f.held;
  CHECK(held == r.children[0].streams.size());
  r.clear(r.children[0]);
  r.trim();
  CHECK(r.jobs.empty());
  CHECK(r.flows.empty());
}

TEST_CASE("roster: rows are few again although the last one stays", "[cluster][roster]") {
  bench r;
  r.children[0].is_relay = true;
  wire::report many;
  many.supplies = {7};
  many.lease.supply = {{}};
  core::job_id key;
  key.low = 1;
  for (unsigned n = 0; n < 1000; ++n, ++key.low) many.streams.emplace_back().job = key;
  r.take(0, many, r.now);
  wire::job_entry const honest = entry(1000, "honest", "gold");
  r.list(1, honest);
  wire::report one = many;
  one.streams.resize(1);
  one.streams[0].job = honest.job;
  r.take(1, one, r.now);
  r.sent(r.children[1].streams[0], 500);
  r.clear(r.children[0]);
  r.trim();
  CHECK(r.jobs.size() == 1);
  CHECK(r.flows.size() == 1);
  std::uint32_t const row = r.job_of(honest.job);
  REQUIRE(row == 0);
  CHECK(r.class_of(honest.job) == "gold");
  CHECK(r.at(row, 0).held == 500);
  CHECK(r.children[1].streams[0].job == row);
  CHECK(r.children[1].jobs[0].job == row);
  r.take(0, many, ++r.now);
  CHECK(r.jobs.size() == 1001);
  one.streams.clear();
  r.take(1, one, ++r.now);
  CHECK(r.job_of(honest.job) == roster::nobody);
}

TEST_CASE("roster: jobs of a silent child are remembered for a day, by name only",
          "[cluster][roster]") {
  bench r;
  wire::job_entry const gold = entry(1000, "4711", "gold"), bronze = entry(1000, "4711", "bronze");
  r.list(0, gold);
  r.children[0].live = false;
  r.silence(r.children[0]);
  r.expire(r.children[0], r.now += 30'000 * ms, cycle);
  CHECK(r.presence_of(gold.job) == cluster::presence::awaited);
  std::uint32_t const row = r.job_of(gold.job);
  CHECK_FALSE(r.jobs[row].is_here());
  CHECK(r.jobs[row].votes.empty());
  r.list(1, bronze);  // the next job of that name
  CHECK(r.class_of(gold.job) == "bronze");
  CHECK(r.presence_of(gold.job) == cluster::presence::here);
  r.clear(r.children[1]);
  CHECK(r.presence_of(gold.job) == cluster::presence::awaited);
  SECTION("it comes back with it") {
    r.welcome_back(r.children[0], r.now);
    r.children[0].live = true;
    r.expire(r.children[0], r.now + 10'000 * ms, cycle);
    r.list(0, gold);
    CHECK(r.class_of(gold.job) == "gold");
    CHECK(r.jobs[row].is_here());
  }
  SECTION("it comes back without it") {
    r.welcome_back(r.children[0], r.now);
    r.children[0].live = true;
    r.expire(r.children[0], r.now + 30'000 * ms, cycle);
    CHECK(r.presence_of(gold.job) == cluster::presence::gone);
  }
  SECTION("it never comes back") {
    r.expire(r.children[0], r.now + 86'400'000 * ms, cycle);
    CHECK(r.presence_of(gold.job) == cluster::presence::gone);
    CHECK(r.children[0].jobs.empty());
  }
}

TEST_CASE("roster: what is remembered of silent children stays bounded", "[cluster][roster]") {
  bench r;
  for (std::uint32_t c = 0; c < 12; ++c) {
    cluster::child& relay = r.meet(c, 1);
    relay.is_relay = true;
    wire::job_list l;
    for (unsigned n = 0; n < 25'000; ++n) l.jobs.push_back(entry(c, std::to_string(n), "gold"));
    r.take(c, l, r.now);
    relay.live = false;
    r.silence(relay);
  }
  r.now += 30'000 * ms;
  for (cluster::child& c : r.children) r.expire(c, r.now, cycle);
  CHECK(r.children[0].jobs.size() == 20'000);
  std::size_t all = 0;
  for (cluster::child const& c : r.children) all += c.jobs.size();
  CHECK(all == 200'000);
  for (cluster::child& c : r.children) r.expire(c, r.now + 86'400'000 * ms, cycle);
  r.trim();
  CHECK(r.jobs.empty());
}

TEST_CASE("overrides end with their job, not with a node that is silent", "[cluster]") {
  cluster::absences all;
  enum { over, away, here, unheard };
  // The node of the first lives and has it no more, that of the second is silent. Nobody has told
  // of the last since a restart.
  constexpr cluster::presence where[] = {cluster::presence::gone, cluster::presence::awaited,
                                         cluster::presence::here, cluster::presence::gone};
  for (auto const job : {over, away, here})
    CHECK_FALSE(all.is_over(job, cluster::presence::here, begin));
  auto const ended = [&](lease::time_ns now) {
    int n = 0;
    for (auto const job : {over, away, here, unheard})
      n += all.is_over(job, where[job], now) ? 1 << job : 0;
    return n;
  };
  CHECK(ended(begin) == 0);
  CHECK(ended(begin + 60'000 * ms) == 0);
  CHECK(ended(begin + 130'000 * ms) == 1 << over);
  CHECK(ended(begin + 90'000'000 * ms) == (1 << away | 1 << unheard));
}

TEST_CASE("address: the other end of a connection is on this machine", "[control]") {
  for (char const* a : {"127.0.0.1", "::1", "[::1]:9742", "localhost:1"})
    CHECK(runtime::is_loopback(a));
  for (char const* a : {"::2", "10.0.0.1", "[::2]:1", "fe80::1"})
    CHECK_FALSE(runtime::is_loopback(a));
}
