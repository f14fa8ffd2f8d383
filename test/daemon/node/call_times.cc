// SPDX-License-Identifier: Apache-2.0
// How long calls take and wait, as the metrics of a node say it: sums that only grow, whatever the
// memory of a job says.
#include "node/call_times.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

using namespace sluice;
using runtime::metric;

namespace {

constexpr unsigned stat_op = static_cast<unsigned>(core::op::stat);

struct world {
  std::unique_ptr<abi::segment> s = std::make_unique<abi::segment>();
  policy::site site;
  node::call_times times;
  node::told_times told;
  std::int64_t now_ns = 0;

  world() {
    s->rules.target_count = 3;
    name(1, 0, "scratch");
    name(2, 16, "mine");
    s->rules.string_bytes = 32;
    site.targets.emplace_back().name = "scratch";
  }
  void name(unsigned target, unsigned at, char const* text) {
    auto const length = static_cast<std::uint32_t>(strlen(text));
    std::memcpy(s->rules.strings + at, text, length);
    s->rules.target[target].name = {at, length};
  }
  void took(unsigned target, std::uint64_t ns, std::uint64_t weight) {
    abi::call_time& t = s->time[target][stat_op];
    t.took.add(ns, weight);
    t.took_ns += ns * weight;
    ++t.samples;
  }
  std::string look() {
    times.look_at_calls(*s, told, site, "gold");
    times.look_at_waits(*s, 0, told, "gold");
    runtime::metric_table m;
    times.publish(m);
    m.publish(now_ns += 1'000'000'000);
    return m.text();
  }
};

std::string line(char const* what, char const* target) {
  return std::string("sluice_call_duration_seconds_") + what +
         "{class=\"gold\",op=\"stat\",target=\"" + target + "\"} ";
}

}  // namespace

TEST_CASE("node call times: what grew is added, by class, op and target of the policy") {
  world w;
  w.took(1, 2'000'000, 10);
  w.took(2, 1'000, 1);
  std::string text = w.look();
  CHECK(text.find(line("count", "scratch") + "10") != text.npos);
  CHECK(text.find(line("sum", "scratch") + "0.02") != text.npos);
  CHECK(text.find(line("count", "elsewhere") + "1") != text.npos);
  CHECK(text.find("mine") == text.npos);  // a user's own name makes no row
  w.took(1, 2'000'000, 5);
  text = w.look();
  CHECK(text.find(line("count", "scratch") + "15") != text.npos);
  w.s->channel[0].waits.add(3'000);
  text = w.look();
  CHECK(text.find("sluice_wait_duration_seconds_count{class=\"gold\"} 1") != text.npos);
}

TEST_CASE("node call times: memory that goes back or jumps adds nothing") {
  world w;
  w.took(1, 1'000, 10);
  w.look();
  std::memset(static_cast<void*>(&w.s->time[1][stat_op]), 0xff, sizeof(abi::call_time));
  std::string text = w.look();
  CHECK(text.find(line("count", "scratch") + "10\n") != text.npos);
  std::memset(static_cast<void*>(&w.s->time[1][stat_op]), 0, sizeof(abi::call_time));
  w.took(1, 1'000, 3);
  text = w.look();
  CHECK(text.find(line("count", "scratch") + "10\n") != text.npos);  // back
  w.took(1, 1'000, 3);
  text = w.look();
  CHECK(text.find(line("count", "scratch") + "13\n") != text.npos);
}
