// SPDX-License-Identifier: Apache-2.0
// What a keeper makes of the counters of a job, and what it writes into its buckets, in simulated
// time: it sees the foreground as it is, limits what moves, and limits end by themselves.
#include "background/keeper.h"

#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/token_bucket.h"
#include "policy/compile.h"
#include "policy/policy.h"
#include "segment/counted.h"

using namespace sluice;
using policies::tail_sign;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t mib = 1 << 20;

/// A job of which one thread counts. Its channels are told by their roles.
struct kept_job {
  std::unique_ptr<abi::segment> s = std::make_unique<abi::segment>();
  policy::compiled limits;
  std::optional<background::keeper> by;
  std::int64_t now_ns = 1'000'000 * ms;

  kept_job() {
    policy::site const site = policy::parse_policy(
        R"({"roles": {"db": {"flush": {"thread": "a"}, "compaction-low": {"thread": "b"},
            "compaction-high": {"thread": "c"}, "foreground": {"rest": true}}},
            "targets": {"tmp": {"path": "/tmp", "capacity": {"data": "60MiB/s"}}},
            "classes": {"kv": {"tmp": {"data": {"algorithm": "tail-latency",
              "foreground": "30MiB/s", "floor": "3MiB/s"}}}}})",
        "p");
    policy::compile_input input;
    input.targets = site.targets;
    input.roles = site.roles;
    policy::add_background_channels(policy::backgrounds_of(site, "kv"), input.channels);
    limits = policy::compile(input, policy::this_machine());
    s->rules = *limits.rules;
    for (unsigned i = 0; i < limits.curves.size(); ++i)
      core::init(s->bucket[i], limits.curves[i], now_ns);
    s->head.shards_used = 1;
    by = background::keeper::of(*s, policy::backgrounds_of(site, "kv").at(0));
  }
  unsigned channel(std::string_view name) const {
    for (unsigned i = 0; i < s->rules.channel_count; ++i)
      if (core::view(s->rules, s->rules.channel[i].name) == name) return i;
    return core::max_channels;
  }
  void move(std::string_view name, std::uint64_t bytes) {
    s->owned[0].channel[channel(name)].amount += bytes;
  }
  void look(policies::rate most = policies::unbounded) {
    by->look(*s, most, now_ns += 20 * ms, segment::writer_of(*s));
  }
  double limit_of_high() const {
    return policy::per_second(core::unit_kind::bytes,
                              segment::rate_of(*s, channel("data:compaction-high@tmp"), now_ns));
  }
  /// Each look moves as much.
  void run(double foreground_mib, double high_mib, double seconds,
           policies::rate most = policies::unbounded) {
    auto const part = [](double mibs) {
      return static_cast<std::uint64_t>(mibs * static_cast<double>(mib) / 50);
    };
    for (int i = 0; i < static_cast<int>(seconds * 50); ++i) {
      move("data:compaction-high@tmp", part(high_mib));
      move("data:(foreground)@tmp", part(foreground_mib));
      look(most);
    }
  }
};

}  // namespace

TEST_CASE("background keeper: what the foreground leaves is for the others") {
  kept_job j;
  REQUIRE(j.by);
  j.run(20, 10, 2);
  CHECK(j.by->sign() == tail_sign::holding);
  CHECK(j.limit_of_high() == Approx(40.0 * mib).epsilon(0.05));
}

TEST_CASE("background keeper: the job's own grant is all there is") {
  kept_job j;
  j.run(5, 10, 2, policies::rate{20} * mib * 1000);
  CHECK(j.limit_of_high() == Approx(15.0 * mib).epsilon(0.05));
}

TEST_CASE("background keeper: a limit ends by itself, and a job that is idle has none") {
  kept_job j;
  j.run(20, 10, 2);
  double const held = j.limit_of_high();
  j.now_ns += 1100 * ms;
  CHECK(j.limit_of_high() > 1e11);  // nobody has looked
  j.run(20, 10, 1);
  CHECK(j.limit_of_high() == Approx(held).epsilon(0.05));
  CHECK(j.by->is_busy(j.now_ns));
  j.run(0, 0, 1.1);
  CHECK_FALSE(j.by->is_busy(j.now_ns));
  CHECK(j.limit_of_high() > 1e11);
}

TEST_CASE("background keeper: whatever another one wrote is written again") {
  kept_job j;
  j.run(20, 10, 2);
  unsigned const high = j.channel("data:compaction-high@tmp");
  core::set_curve(j.s->bucket[high], policy::settings_of(core::unit_kind::bytes, 0), j.now_ns);
  REQUIRE(j.limit_of_high() == 0);
  j.run(20, 10, 0.02);
  CHECK(j.limit_of_high() == Approx(40.0 * mib).epsilon(0.05));
}

TEST_CASE("background keeper: a job that is paused stays so") {
  kept_job j;
  j.run(20, 10, 2);
  core::curve_settings const none = policy::settings_of(core::unit_kind::bytes, 0);
  for (char const* name : {"data:(foreground)@tmp", "data:compaction-high@tmp"})
    core::set_curve(j.s->bucket[j.channel(name)], none, j.now_ns);
  j.run(0, 0, 3);
  CHECK(j.limit_of_high() == 0);
  core::set_curve(j.s->bucket[j.channel("data:(foreground)@tmp")], j.limits.curves[0], j.now_ns);
  j.run(20, 10, 0.1);
  CHECK(j.limit_of_high() > 0);
}

TEST_CASE("background keeper: counters that a job has scribbled over do no harm") {
  kept_job j;
  for (std::uint64_t const garbage : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{0}})
    for (auto const* name :
         {"data:(foreground)@tmp", "data:flush@tmp", "data:compaction-high@tmp"}) {
      j.s->owned[0].channel[j.channel(name)].amount = garbage;
      j.s->owned[0].waiting.channel = ~0u;
      j.s->head.shards_used = ~0u;
      j.look();
      CHECK((j.limit_of_high() >= 0 && j.limit_of_high() < 1e13));
    }
}

TEST_CASE("background keeper: a job without the channels has none") {
  kept_job j;
  policy::background_terms other = j.by->terms();
  other.foreground_channel = "data:(foreground)@elsewhere";
  CHECK_FALSE(background::keeper::of(*j.s, other));
  other = j.by->terms();
  other.channels = {};
  CHECK_FALSE(background::keeper::of(*j.s, other));
  j.s->rules.channel_count = ~0u;  // scribbled over
  CHECK_FALSE(background::keeper::of(*j.s, j.by->terms()));
}
