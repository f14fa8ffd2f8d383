// SPDX-License-Identifier: Apache-2.0
// Limits and shares in virtual IOPs: where their costs come from, what of them may be promised,
// what is refused.
#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.h"
#include "core/units.h"
#include "lib/scratch.h"
#include "policy/carried.h"
#include "policy/change.h"
#include "policy/compile.h"
#include "policy/control.h"
#include "policy/cost_file.h"
#include "policy/policy.h"
#include "policy/supply.h"

using namespace sluice;
using Catch::Contains;

namespace {

constexpr char const* costs =
    R"({"version": 1, "max_vops": 8000, "provisionable_vops": 4000,
 "read": [[4096, 1], [65536, 2.5]], "write": [[4096, 1], [65536, 5]], "ops": {"fsync": 20}})";

std::string with_path(std::string const& rest) {
  return R"({"targets": {"scratch": {"path": "/scratch", )" + rest;
}

/// A policy beside its cost file, read from there.
struct written {
  test::scratch folder;
  std::string file = folder.dir + "/site.json";

  explicit written(std::string const& text, std::string const& cost_text = costs) {
    std::ofstream(folder.dir + "/s.cost.json") << cost_text;
    std::ofstream(file) << text;
  }
  std::string error_of_it() const {
    try {
      policy::read_policy(file);
    } catch (error const& e) {
      CHECK(e.status() == exit_usage);
      return e.what();
    }
    return {};
  }
};

std::string shared(std::string const& capacity, std::string const& classes) {
  return with_path(R"("cost": "s.cost.json", "capacity": {"vops": ")" + capacity + R"("}}},
 "classes": )" + classes +
                   "}");
}

policy::file_system files(std::string const& mounted = "ext4 /dev/loop1") {
  policy::file_system f;
  f.mounts = parse_mounts("27 1 254:0 / / rw - ext4 /dev/vda rw\n40 27 7:1 / /scratch rw - " +
                          mounted + " rw\n");
  f.find = [](std::string const& path) {
    policy::place p;
    p.path = path;
    p.device = (std::uint64_t{7} << 32) + 1;
    p.mount_id = 40;
    return p;
  };
  return f;
}

policy::channel_spec limit(std::string const& text, char const* cost_text) {
  auto c = policy::parse_limit(text);
  c.costs = std::make_shared<policy::cost_file>(policy::parse_cost_file(cost_text, "c"));
  return c;
}

}  // namespace

TEST_CASE("a calibrated capacity is the floor, and may be promised", "[vops]") {
  written const p(shared("calibrated", R"({"gold": {"scratch": {"vops": {"reservation": "40%",
    "weight": 4, "limit": "75%"}}}, "tin": {"scratch": {"vops": {"reservation": "60%"}}}})"));
  auto const site = policy::read_policy(p.file);
  auto const supply = policy::supplies(site).at(0);
  CHECK(supply.name() == "vops@scratch");
  CHECK(supply.unit == core::unit_kind::vops);
  CHECK(supply.capacity == 4'000'000);
  CHECK(supply.promisable == 4'000'000);
  auto const gold = policy::share_of(site, "gold", supply).value();
  CHECK(policy::milli_per_second(*gold.reservation) == 1'600'000);
  CHECK(policy::milli_per_second(*gold.limit) == 3'000'000);
  CHECK(policy::rate_text(gold.reservation->unit, gold.reservation->rate_q40) == "1.6k VOP/s");
}

TEST_CASE("a part of the capacity is an amount of any resource", "[vops]") {
  auto const site = policy::parse_policy(with_path(R"("capacity": {"data": "10MB/s"}}},
    "classes": {"a": {"scratch": {"data": {"limit": "12.5%"}}}}})"),
                                         "p");
  auto const share = policy::share_of(site, "a", policy::supplies(site).at(0)).value();
  CHECK(policy::rate_text(share.limit->unit, share.limit->rate_q40) == "1.25MB/s");
  auto const refuses = [](std::string const& limit) {
    return written(with_path(R"("capacity": {"data": "10MB/s"}}}, "classes": {"a": {"scratch":
      {"data": {"limit": ")" +
                             limit + R"("}, "metadata": {"limit": "5/s"}}}}})"))
        .error_of_it();
  };
  CHECK(refuses("12%").empty());
  CHECK_THAT(refuses("101%"), Contains("more than all there is"));
  CHECK_THAT(refuses("x%"), Contains("not a percentage like 40%"));
  CHECK_THAT(refuses("5MB%"), Contains("not a percentage like 40%"));
}

TEST_CASE("what is promised must fit the floor, whatever the capacity", "[vops]") {
  auto const classes = R"({"gold": {"scratch": {"vops": {"reservation": "2.5k/s"}}},
    "tin": {"scratch": {"vops": {"reservation": "2k/s"}}}})";
  CHECK_THAT(written(shared("6k/s", classes)).error_of_it(),
             Contains("reservations of vops@scratch exceed what its file system gives whatever "
                      "meets: 2.5k VOP/s (gold) + 2k VOP/s (tin) = 4.5k VOP/s, 500 VOP/s more "
                      "than the 4k VOP/s there are"));
  written const more(shared("6k/s", "{}"));
  auto const site = policy::read_policy(more.file);
  CHECK(policy::supplies(site).at(0).capacity == 6'000'000);
  bool is_said = false;
  for (auto const& line : policy::warnings(site))
    is_said |= line.find("only 4k VOP/s of it may be reserved") != line.npos;
  CHECK(is_said);
}

TEST_CASE("VOPs need costs", "[vops]") {
  CHECK_THAT(written(with_path(R"("capacity": {"vops": "5k/s"}}}})")).error_of_it(),
             Contains("site.json:1:") && Contains("sluice calibrate /scratch -o FILE"));
  CHECK_THAT(written(with_path(R"("capacity": {"data": "1MB/s"}}},
    "classes": {"a": {"scratch": {"vops": {"weight": 2}}}}})"))
                 .error_of_it(),
             Contains("target scratch has no \"cost\""));
  CHECK_THAT(written(shared("5MB/s", "{}")).error_of_it(),
             Contains("vops is measured in virtual IOPs (VOPs), like 5k/s"));
  CHECK_THAT(written(with_path(R"("cost": "gone.json"}}})")).error_of_it(),
             Contains("site.json:1:54: targets.scratch.cost: ") && Contains("gone.json"));
  CHECK_THAT(written(shared("calibrated", "{}"), R"({"version": 1})").error_of_it(),
             Contains("targets.scratch.cost") && Contains("s.cost.json"));
}

TEST_CASE("a policy carries its cost files when it is passed on", "[vops]") {
  written const p("\n" + shared("calibrated", "{}"));
  std::string const text = policy::read_policy_text(p.file);
  std::filesystem::remove(p.folder.dir + "/s.cost.json");
  auto const site = policy::parse_policy(text, "sent");
  REQUIRE(site.targets.at(0).costs != nullptr);
  CHECK(site.targets[0].costs->provisionable_vops == 4000);
  CHECK(core::cost_milli(policy::to_table(*site.targets[0].costs), core::op::fsync, 0, true) ==
        20000);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);  // errors further down keep their lines
  std::string const plain = with_path(R"("capacity": {"data": "1MB/s"}}}})");
  CHECK(policy::carry_costs(plain, "p") == plain);
  CHECK_THROWS_WITH(policy::parse_policy(shared("calibrated", "{}"), "sent"),
                    Contains("only a policy that is read from a file can do that"));
}

TEST_CASE("policy: a cost file names no further cost files", "[policy][cost]") {
  written const p(shared("calibrated", "{}"), R"({"targets": {"t": {"cost": "s.cost.json"}}})");
  CHECK_THAT(p.error_of_it(), Contains("s.cost.json:1:2: unknown key \"targets\""));
}

TEST_CASE("the table lies in the ruleset, once for equal ones", "[vops]") {
  policy::compile_input input;
  input.channels = {limit("vops=5k/s@/scratch", costs), limit("vops=1k/s@/scratch/a", costs),
                    policy::parse_limit("open=5/s")};
  auto const made = policy::compile(input, files());
  core::ruleset const& r = *made.rules;
  REQUIRE(core::validate(r) == nullptr);
  CHECK(r.cost_count == 1);
  for (unsigned i = 0; i < r.channel_count; ++i)
    CHECK((r.channel[i].cost == 1) == core::view(r, r.channel[i].name).starts_with("vops"));
  unsigned const first = core::view(r, r.channel[0].name).starts_with("vops") ? 0 : 1;
  CHECK(core::cost_milli(core::costs_of(r, first), core::op::read, 65536, true) == 2500);
  CHECK(made.curves[first].cap_units == 50 * core::milli_per_vop);  // 50 ms of 1k/s
  auto other = input;
  other.channels[0] = limit("vops=5k/s@/scratch", R"({"version": 1, "max_vops": 8000,
    "read": [[4096, 1], [65536, 9]], "write": [[4096, 1], [65536, 2.5]]})");
  auto const changed = policy::compile(other, files());
  CHECK(changed.rules->cost_count == 2);
  CHECK(changed.hash != made.hash);
}

TEST_CASE("a ruleset with a channel of VOPs and no table is refused", "[vops]") {
  policy::compile_input input;
  input.channels = {limit("vops=5k/s@/scratch", costs)};
  auto const made = policy::compile(input, files());
  made.rules->channel[0].cost = 2;
  CHECK(core::validate(*made.rules) != nullptr);
  made.rules->channel[0].cost = 0;
  CHECK(core::validate(*made.rules) != nullptr);
  made.rules->channel[0].cost = 1;
  made.rules->cost[0].read_milli[0][3] = 0;
  CHECK(core::validate(*made.rules) != nullptr);
  made.rules->cost_count = core::max_cost_tables + 1;
  CHECK(core::validate(*made.rules) != nullptr);
}

TEST_CASE("costs of another mount are refused", "[vops]") {
  policy::compile_input input;
  input.channels = {limit("vops=5k/s@/scratch", R"({"version": 1, "provenance": {"path": "/s",
    "device": "7:1", "fs": "ext4", "source": "/dev/loop1"}, "max_vops": 8000,
    "read": [[4096, 1], [65536, 9]], "write": [[4096, 1], [65536, 2.5]]})")};
  CHECK_NOTHROW(policy::compile(input, files()));
  CHECK_THROWS_WITH(policy::compile(input, files("nfs4 server:/s")),
                    Contains("its cost file is not of"));
}

TEST_CASE("a channel of a policy may count VOPs", "[vops]") {
  auto const text = [](std::string const& match) {
    return with_path(R"("cost": "s.cost.json"}}, "channels": [{"name": "x", "match": )" + match +
                     R"(, "limit": "5k/s"}]})");
  };
  written const p(text(R"({"call": "vops", "target": "scratch", "thread": "bg*"})"));
  auto const c = policy::read_policy(p.file).channels.at(0);
  CHECK(c.amount.unit == core::unit_kind::vops);
  CHECK(policy::rate_text(c.amount.unit, c.amount.rate_q40) == "5k VOP/s");
  CHECK_THAT(written(text(R"({"call": "vops"})")).error_of_it(), Contains("needs a \"target\""));
}

TEST_CASE("a limit in VOPs is written like one in operations", "[vops]") {
  auto const c = policy::parse_limit("vops=1.5k/s@/scratch");
  CHECK(c.name == "vops@/scratch");
  CHECK(policy::per_second(c.amount.unit, c.amount.rate_q40) == 1500);
  CHECK(policy::rate_text(c.amount.unit, c.amount.rate_q40) == "1.5k VOP/s");
  CHECK(policy::bound_text(250, core::unit_kind::vops) == "0.25 VOP/s");
  CHECK_THROWS_WITH(policy::parse_limit("vops=5k/s"), Contains("name the tree"));
  CHECK_THROWS_WITH(policy::parse_limit("vops=5kB/s@/s"), Contains("measured in virtual IOPs"));
}

TEST_CASE("vops: a policy carries how many threads filled the device, for whoever looks later") {
  std::string const measured =
      R"({"version": 1, "max_vops": 2000, "provisionable_vops": 1000, "read":
 [{"bytes": 4096, "cost": 1, "per_s": 2000, "threads": 8, "p50_us": 7},
  {"bytes": 65536, "cost": 4, "per_s": 500, "threads": 32}], "write": [[4096, 1], [65536, 4]]})";
  std::string const text =
      with_path(R"("cost": "s.cost.json", "capacity": {"vops": "calibrated"}}}})");
  written const w(text, measured);
  policy::supply const s = policy::supplies(policy::read_policy(w.file)).at(0);
  REQUIRE(s.measured);
  CHECK(s.measured->floor == 1'000'000);
  CHECK(s.measured->most == 2'000'000);
  CHECK(s.measured->threads == 8);
  written const by_hand(text);
  CHECK_FALSE(policy::supplies(policy::read_policy(by_hand.file)).at(0).measured);
}
