// SPDX-License-Identifier: Apache-2.0
// What a scheduler announces, and which control groups are its own.
#include "node/scheduler.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lib/scratch.h"
#include "node/job.h"
#include "policy/class_list.h"
#include "policy/policy.h"

using namespace sluice;

TEST_CASE("a control group names a job only where no user can make one") {
  using node::job_in_groups;
  CHECK(job_in_groups("5:freezer:/slurm_n0/uid_0/job_1/step_0\n", "n0") == "1");
  CHECK(job_in_groups("0::/\n4:memory:/slurm/uid_1000/job_12/step_batch/task_0\n", "n0") == "12");
  CHECK(job_in_groups("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", "n0") == "7");
  CHECK(job_in_groups("0::/system.slice/n0_slurmstepd.scope/job_8/step_0", "n0") == "8");
  for (char const* const forged :
       {"", "0::/\n", "5:freezer:/slurm_n1/uid_0/job_1\n", "garbage", "::", "1:a:/slurm/job_3\n",
        "0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1000/job_5\n",
        "0::/user.slice/slurmstepd.scope/job_5\n", "0::/slurm/uid_1000/job_5x/step_0\n",
        "0::/slurm/uid_a/job_5\n", "0::/slurmfake/uid_1/job_5\n", "0::/slurm/uid_1/job_\n"}) {
    INFO(forged);
    CHECK(job_in_groups(forged, "n0").empty());
  }
}

TEST_CASE("an announcement is read as far as it can be believed") {
  auto const a = node::read_announcement(
      R"({"job":"12","uid":1000,"nodes":3,"class":"gold","limits":["open=1/s",5],"account":"p"})",
      "12");
  CHECK(a.uid == 1000);
  CHECK_FALSE(a.gid);
  CHECK(a.nodes == 3);
  CHECK(a.qos_class == "gold");
  CHECK(a.limits == std::vector<std::string>{"open=1/s"});
  CHECK(a.account == "p");
  for (char const* const wrong : {"", "[]", "{}", R"({"job":"12"})", R"({"job":"13","uid":1})",
                                  R"({"job":"12","uid":-1})", R"({"job":"12","uid":"root"})"})
    CHECK_THROWS_AS(node::read_announcement(wrong, "12"), error);
}

TEST_CASE("a name of a job may be no UTF-8", "[node][scheduler]") {
  std::string const before = R"({"job":"12","uid":1000,"class":"gold","label":")";
  std::string const strange =
      "\xff"
      "a\xc3\xa4\xc0\x80\xed\xa0\x80\xe2\x82";
  auto const a = node::read_announcement(before + strange + "\"}", "12");
  CHECK(a.qos_class == "gold");
  CHECK(a.label.find("a\xc3\xa4") != std::string::npos);
  CHECK_NOTHROW(nlohmann::json(a.label).dump());
  // One that is too long is cut where that may be.
  std::string umlauts = "x";
  for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
  auto const cut = node::read_announcement(before + umlauts + "\"}", "12");
  CHECK(cut.label.size() >= 254);
  CHECK_NOTHROW(nlohmann::json(cut.label).dump());
}

TEST_CASE("names of the scheduler's jobs are none of users") {
  for (char const* name : {"4242", "4242.0", "12_3", "7.batch"})
    CHECK(node::is_schedulers_name(name));
  for (char const* name : {"hydro", "run-4242", "4x4", "2d-model", "_1", ".1", ""})
    CHECK_FALSE(node::is_schedulers_name(name));
}

TEST_CASE("what cannot be read is not taken for nothing announced") {
  test::scratch const at;
  CHECK(node::announced(at.dir).value().names.empty());
  std::filesystem::create_directory(node::scheduler_dir(at.dir));
  std::ofstream(node::scheduler_dir(at.dir) + "/12") << "x";
  CHECK(node::announced(at.dir).value().names == std::vector<std::string>{"12"});
  for (bool const is_cut : {false, true}) {
    node::announcements const by = {{"11"}, is_cut};
    CHECK_FALSE(node::is_withdrawn(by, at.dir, "11"));
    CHECK(node::is_withdrawn(by, at.dir, "12") == !is_cut);
    CHECK(node::is_withdrawn(by, at.dir, "13"));
  }
  CHECK_FALSE(node::announced(at.dir + "/scheduler/12").has_value());
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit const none = {0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto const without_files = node::announced(at.dir);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(without_files.has_value());
}

TEST_CASE("what a job has to wait for survives in job.json, and is not read from its area") {
  node::job_record r;
  r.name = "hydro";
  r.after = {{"/scratch", 5'000'000'000}, {"/home", 1}};
  auto const again = node::read_record(node::to_text(r));
  REQUIRE(again.after.size() == 2);
  CHECK(again.after[0].root == "/scratch");
  CHECK(again.after[0].patience_ns == 5'000'000'000);
  CHECK(node::read_record(node::to_text({})).after.empty());
}

TEST_CASE("what the scheduler said of a job survives in job.json") {
  node::job_record r;
  r.name = "12";
  r.uid = 7;
  r.scheduler = node::scheduler_terms{true, true, false,  true,     "acc", "12_3",
                                      4,    99,   "note", {{5, 6}}, 7.5,   "b"};
  auto const back = node::read_record(node::to_text(r));
  REQUIRE(back.scheduler);
  CHECK(back.scheduler->is_held);
  CHECK(back.scheduler->is_metered);
  CHECK_FALSE(back.scheduler->is_open);
  CHECK(back.scheduler->had_batch);
  CHECK(back.scheduler->nodes == 4);
  CHECK(back.scheduler->steps == r.scheduler->steps);
  CHECK(back.scheduler->since_boot_s == 7.5);
  CHECK(back.scheduler->boot == "b");
  r.scheduler.reset();
  CHECK_FALSE(node::read_record(node::to_text(r)).scheduler);
}

TEST_CASE("who submits is told the classes there are and those that are his") {
  policy::site const s = policy::parse_policy(
      R"({"targets":{"t":{"path":"/t","capacity":{"metadata":"1k/s"}}},
          "classes":{"gold":{"t":{"metadata":{"weight":2}}},"low":{"t":{"metadata":{"weight":1}}}},
          "access":{"gold":{"users":["nobody"]}}})",
      "p");
  policy::person const her = {65534, 1, {}, "nobody"}, him = {4243, 1, {}, "bob"};
  CHECK(policy::class_list(s, her, "gold", std::nullopt)["classes"].size() == 2);
  CHECK(policy::class_list(s, him, std::nullopt, "open=1/s,data=1MiB/s")["classes"][0]["open"] ==
        false);
  CHECK_THROWS_WITH(policy::class_list(s, him, "gold", std::nullopt),
                    "user bob may not use the class \"gold\" (but: low)");
  CHECK_THROWS_WITH(policy::class_list(s, her, "golf", std::nullopt),
                    Catch::Contains("has no class \"golf\"") && Catch::Contains("gold, low"));
  CHECK_THROWS_AS(policy::class_list(s, her, std::nullopt, "open=1/s,rubbish"), error);
  CHECK(policy::split_limits(",a=1/s,,b=2/s") == std::vector<std::string>{"a=1/s", "b=2/s"});
}
