// SPDX-License-Identifier: Apache-2.0
// How fast the calls of a job are, from memory that its owner may write: what grew counts, and
// nothing else.
#include "node/call_speeds.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

using namespace sluice;

namespace {

struct speeds_world {
  std::unique_ptr<abi::segment> s = std::make_unique<abi::segment>();
  policy::site site;
  policy::supply metadata, data;
  node::told_speeds told;
  policies::call_speeds seen[2];

  speeds_world() {
    s->rules.target_count = 2;
    std::memcpy(s->rules.strings, "scratch", 7);
    s->rules.string_bytes = 16;
    s->rules.target[1].name = {0, 7};
    site.targets.emplace_back().name = "scratch";
    metadata.target = data.target = "scratch";
    metadata.resource = "metadata", data.resource = "data";
    metadata.steered = policy::auto_capacity{{}, 5'000'000, 100'000, false};
    data.steered = policy::auto_capacity{{}, 1'000, 100'000, false};
    look();  // the first only begins
  }
  void took(core::op what, std::uint64_t ns, std::uint64_t weight, unsigned target = 1) {
    abi::call_time& t = s->time[target][static_cast<unsigned>(what)];
    t.took.add(ns, weight);
    t.took_ns += ns * weight;
    ++t.samples;
  }
  void look() {
    policy::supply const* const supplies[] = {&metadata, &data};
    seen[0] = seen[1] = {};
    node::look_at_speeds(*s, site, supplies, told, seen);
  }
};

}  // namespace

TEST_CASE("node call speeds: what grew, by the supply that counts the op") {
  speeds_world w;
  w.took(core::op::stat, 1'000'000, 10);
  w.took(core::op::open, 9'000'000, 2);
  w.took(core::op::read, 2'000'000, 7);
  w.took(core::op::stat, 9'000'000, 5, 0);  // elsewhere
  w.look();
  CHECK(w.seen[0].samples == 2);
  CHECK(w.seen[0].calls == 12);
  CHECK(w.seen[0].slow == 2);
  CHECK(w.seen[0].took_ns == 28'000'000);
  CHECK(w.seen[1].calls == 7);
  CHECK(w.seen[1].slow == 7);
  w.look();
  CHECK(w.seen[0].calls == 0);
  w.took(core::op::stat, 100'000'000, 1);
  w.look();
  CHECK(w.seen[0].calls == 1);
  CHECK(w.seen[0].slow == 1);
}

TEST_CASE("node call speeds: what was before the first look does not count") {
  speeds_world w;
  w.took(core::op::stat, 9'000'000, 5);
  w.told = {};
  w.look();
  CHECK(w.seen[0].calls == 0);
}

TEST_CASE("node call speeds: memory that goes back or jumps counts nothing") {
  speeds_world w;
  w.took(core::op::stat, 1'000'000, 10);
  w.look();
  auto* const t = static_cast<void*>(&w.s->time[1][static_cast<unsigned>(core::op::stat)]);
  std::memset(t, 0xff, sizeof(abi::call_time));
  w.look();
  CHECK(w.seen[0].calls == 0);
  CHECK(w.seen[0].slow == 0);
  std::memset(t, 0, sizeof(abi::call_time));
  w.look();
  CHECK(w.seen[0].calls == 0);
}

TEST_CASE("node call speeds: within a step of the histogram the part above counts") {
  core::histogram_counts h = {};
  h.count[core::histogram_step(4096)] = 1000;  // 4096 to 5119
  CHECK(node::slower_than(h, 4096) == 1000);
  CHECK(node::slower_than(h, 4352) == 750);
  CHECK(node::slower_than(h, 5120) == 0);
  CHECK(node::slower_than(h, 1) == 1000);
}
