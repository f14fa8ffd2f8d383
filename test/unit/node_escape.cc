// SPDX-License-Identifier: Apache-2.0
// Who is in a job and who of it escapes, told from a /proc made up here.
#include "node/escape.h"

#include <catch2/catch.hpp>
#include <map>

#include "node/census.h"

using namespace sluice;

namespace {

struct fake_proc final : node::proc {
  struct process {
    node::process_facts facts;
    std::string preload;
    node::process_doings doings;
  };
  std::map<std::uint32_t, process> all;
  mutable unsigned looked = 0;

  void add(std::uint32_t pid, std::uint32_t parent, std::string preload = {},
           node::process_doings d = {}) {
    all[pid] = {{pid, parent, 10 * pid, "p" + std::to_string(pid)}, std::move(preload), d};
  }
  std::vector<std::uint32_t> pids() const override {
    std::vector<std::uint32_t> out;
    for (auto const& [pid, p] : all) out.push_back(pid);
    return out;
  }
  std::optional<node::process_facts> facts(std::uint32_t pid) const override {
    auto const at = all.find(pid);
    if (at == all.end()) return std::nullopt;
    return at->second.facts;
  }
  std::string preload(std::uint32_t pid) const override { return all.at(pid).preload; }
  node::process_doings doings(std::uint32_t pid) const override {
    ++looked;
    return all.at(pid).doings;
  }
};

node::process_doings doing(std::uint64_t bytes, bool library, bool is_static, bool ring = false) {
  return {true, bytes, 10, library, is_static, ring};
}

std::map<std::string, std::vector<node::escaped>> walk(fake_proc const& p,
                                                       std::vector<node::watched_job> jobs) {
  node::escape_watch w(p);
  w.begin(std::move(jobs));
  for (int i = 0; i < 10000 && !w.step(); ++i) continue;
  return w.found();
}

}  // namespace

TEST_CASE("escapes are found by descent and by the preload they inherited", "[node][escape]") {
  fake_proc p;
  p.add(1, 0);
  p.add(100, 1);                                      // the joiner, exec'ed and attached
  p.add(101, 100, "", doing(9 << 20, false, true));   // a static child
  p.add(102, 101, "", doing(9 << 20, false, false));  // its child, environment scrubbed
  p.add(103, 1, "/run/jobs/a/libinterpose.so", doing(9 << 20, false, true));  // orphaned
  p.add(104, 100, "", doing(9 << 20, true, false));  // loaded, did nothing metered
  p.add(105, 100, "", doing(100, false, true));      // static and idle
  p.add(106, 100, "", doing(0, true, false, true));  // a ring
  p.add(200, 1, "/run/jobs/ab/libinterpose.so", doing(9 << 20, false, true));  // another job's
  p.add(201, 1, "", doing(9 << 20, false, true));                              // nobody's
  auto const found = walk(p, {{"a", "/run/jobs/a", {100, 106}, {}}});
  REQUIRE(found.size() == 1);
  std::map<std::uint32_t, std::string> why;
  for (auto const& e : found.at("a")) why[e.pid] = e.why;
  CHECK(why == std::map<std::uint32_t, std::string>{{101, "static program"},
                                                    {102, "library not loaded"},
                                                    {103, "static program"},
                                                    {106, "io_uring"}});
}

TEST_CASE("a joiner counts only as long as it is the same process", "[node][escape]") {
  fake_proc p;
  p.add(100, 1, "", doing(9 << 20, false, true));
  CHECK(walk(p, {{"a", "/a", {}, {{100, 1000}}}}).at("a").size() == 1);
  CHECK(walk(p, {{"a", "/a", {}, {{100, 999}}}}).empty());
}

TEST_CASE("a loop of parents ends, a crowd is cut", "[node][escape]") {
  fake_proc p;
  p.add(10, 11);
  p.add(11, 10);
  p.add(100, 1);
  for (std::uint32_t pid = 1000; pid < 1500; ++pid)
    p.add(pid, 100, "", doing(9 << 20, false, true));
  auto const found = walk(p, {{"a", "/a", {100}, {}}});
  CHECK(found.at("a").size() == 64);
}

TEST_CASE("heads are counted in bounded steps", "[node][escape]") {
  auto const s = std::make_unique<abi::segment>();
  for (unsigned i = 0; i < 1000; ++i) {
    s->process[i * 4].pid = i + 1;
    s->process[i * 4].start_ticks = i % 2;
    s->process[i * 4].pid_space = 5;
  }
  s->process[1].pid = 9999;
  s->process[1].pid_space = 6;  // of a container: it cannot be looked at
  unsigned lookups = 0;
  node::census c(
      [&](std::uint32_t, std::uint64_t ticks) {
        ++lookups;
        return ticks == 1;
      },
      5);
  node::head_count found;
  unsigned steps = 0;
  for (bool complete = false; !complete; ++steps) {
    unsigned budget = 64;
    unsigned const before = lookups;
    complete = c.step(*s, budget, found);
    REQUIRE(lookups - before <= 64);
  }
  CHECK(steps == 16);
  CHECK(found.processes == 501);
  CHECK(found.pids.size() == 500);
}
