// SPDX-License-Identifier: Apache-2.0
// The daemon of a node as a whole, without socket and parent: which jobs it keeps, what it does
// with a segment that its owner has scribbled over, what it forgets.
#include "node/state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "abi/path_area.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "node/node_role.h"
#include "node/result_room.h"
#include "node_world.h"
#include "runtime/user_names.h"
#include "segment/jobs.h"
#include "segment/segment_file.h"
#include "verbs/change.h"
#include "wire/socket.h"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t two_walks = 46'000 * ms;  // and a sweep

/// It does nothing until its end().
pid_t idle_child() {
  pid_t const child = fork();
  if (child != 0) return child;
  pause();
  _exit(0);
}
void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// This process, as one that is attached.
void attach(node::job& j, unsigned slot) {
  auto const pid = static_cast<std::uint32_t>(getpid());
  abi::process_of((*j.map), slot).start_ticks.store(start_ticks(pid));
  abi::process_of((*j.map), slot).pid_space.store(segment::own_pid_space());
  abi::process_of((*j.map), slot).pid.store(pid);
}

}  // namespace

TEST_CASE("a released job stays while somebody lives in it", "[node][state]") {
  world w;
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  w.pass(500 * ms);
  attach(*w.find("7"), 3);
  w.withdraw("7");
  SECTION("found gone") {}
  SECTION("told") { w.s->heed_scheduler(w.when); }
  w.pass(5'000 * ms);
  REQUIRE(w.find("7") != nullptr);
  CHECK_FALSE(w.find("7")->record.scheduler->is_held);
  CHECK(w.has_folder("7"));
  (*w.find("7")->map).near_process[3].pid.store(0);
  w.pass(2'000 * ms);
  CHECK(w.find("7") == nullptr);
  CHECK_FALSE(w.has_folder("7"));
}

TEST_CASE("a node without a parent starts where no lease can be kept", "[node][state]") {
  world w;
  auto const zmq = wire::make_context();
  w.services.zmq = zmq.get();
  w.config.plain = true;
  fs::create_directory(w.config.state_dir + "/lease");
  SECTION("without") {
    w.start();
    CHECK(w.join("j").streams.size() == 1);
    CHECK(std::ranges::count_if(w.lines, [](auto const& l) {
            return l.find("lease cannot be kept") != l.npos;
          }) == 1);
  }
  SECTION("with one") {
    w.config.parents = {"tcp://127.0.0.1:1"};
    CHECK_THROWS_WITH(w.start(), Catch::Contains("/lease: "));
  }
}

TEST_CASE("a job that waits for its last sync, or ends, is no end of others' cycle",
          "[node][state]") {
  auto const zmq = wire::make_context();
  world w;
  bool const waits = GENERATE(true, false);
  std::string const after = R"("after": {"write": "*/MANIFEST*", "durable": "*/rank*"}, )";
  std::string text = w.policy(R"({"metadata": "1000/s"})");
  if (waits) {
    text.insert(text.find("\"path\""), after);
    w.services.zmq = zmq.get();
    w.config.plain = true;
    w.config.parents = {"tcp://127.0.0.1:1"};
    write(w.config.state_dir + "/policy.json", text);
  }
  w.start();
  pid_t const child = idle_child();
  w.join("a", child);
  node::job const& b = w.join("b");
  REQUIRE(b.streams.size() == 1);
  w.s->turn_gates(w.when);  // the only turn: nothing is synced
  std::string const overrides = w.config.state_dir + "/overrides.json";
  write(overrides, "as it was");
  std::int64_t const since_ns = b.streams[0].measured.since_ns();
  end(child);
  w.pass(5'000 * ms);
  CHECK((w.find("a") != nullptr) == waits);
  CHECK(b.streams[0].measured.since_ns() == since_ns);
  CHECK(read(overrides) == "as it was");
}

TEST_CASE("full process slots of one user keep nobody's jobs from being counted",
          "[node][state][census]") {
  if (geteuid() != 0) return;
  constexpr uid_t his = 65011, hers = 65012;
  world w;
  w.start();
  pid_t const gone = idle_child();
  end(gone);
  for (char const* name : {"a", "b", "c"}) {
    node::job& j = w.join(name, gone, his);
    for (unsigned i = 0; i < abi::process_slots; ++i)
      abi::process_of((*j.map), i).pid.store(1'000'000'000 + i);
  }
  w.pass(100 * ms);
  node::job const& j = w.join("z", getpid(), hers);
  w.pass(50 * ms);
  CHECK(j.counted_ns != 0);
  CHECK(w.s->jobs.find(his, "c")->counted_ns == 0);
  w.pass(6'000 * ms);
  CHECK(w.s->jobs.find(his, "c") == nullptr);  // his come to their end as well
}

TEST_CASE("a job that looks the same is not walked, and who comes or dies is seen",
          "[node][state]") {
  world w;
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  auto& s = (*w.find("7")->map);
  attach(*w.find("7"), 3);
  w.pass(3'000 * ms);
  REQUIRE(w.find("7")->processes == 1);
  pid_t const child = idle_child();
  attach(*w.find("7"), 4);
  s.near_process[4].pid.store(static_cast<std::uint32_t>(child));
  s.near_process[4].start_ticks.store(start_ticks(child));
  w.pass(3'000 * ms);
  CHECK(w.find("7")->processes == 1);  // nobody has said that he came
  SECTION("it says that it came") { s.head.attached_total.fetch_add(1); }
  SECTION("it says nothing") { w.pass(60'000 * ms); }
  w.pass(3'000 * ms);
  CHECK(w.find("7")->processes == 2);
  end(child);
  w.pass(3'000 * ms);
  CHECK(w.find("7")->processes == 1);
  s.near_process[3].pid.store(0);
}

TEST_CASE("the result of a job whose ruleset was scribbled over has no channels", "[node][state]") {
  world w;
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  core::ruleset& rules = as_shared((*w.find("7")->map).rules);
  SECTION("a name far away") { rules.channel[0].name.offset = 0x7fff0000; }
  SECTION("more than all memory") { rules.channel[0].name.length = 0xffffffff; }
  SECTION("no end of rules") {
    rules.rule_count = 0xffffffff;
    rules.rule[0].channel = 63;
  }
  w.withdraw("7");
  w.s->heed_scheduler(w.when);
  auto const result = nlohmann::json::parse(read(w.run + "/results/7.json"));
  CHECK(result["channels"].empty());
  CHECK(result["jobs"][0]["job"] == "7");
}

/// All names and paths are the whole pool, and nothing is left out.
void fill_with_text(abi::segment volatile& memory) {
  auto& s = as_shared(memory);
  core::ruleset& r = s.rules;
  core::text const all = {0, r.string_bytes = sizeof r.strings};
  std::memset(r.strings, '"', sizeof r.strings);
  r.target_count = core::max_targets;
  r.channel_count = core::max_channels;
  r.rule_count = core::max_rules;
  for (auto& t : r.target) t.name = t.path = all;
  for (auto& c : r.channel) c.name = c.origin = all;
  for (unsigned i = 0; i < core::max_rules; ++i)
    r.rule[i].target = 1, r.rule[i].channel = static_cast<std::uint8_t>(i);
  for (auto& of_target : s.time)
    for (auto& t : of_target) t.samples = 1;
  for (auto& z : s.size)
    for (unsigned i = 0; i < abi::size_steps; ++i) z.read[i] = z.written[i] = ~0ull;
}

TEST_CASE("the result of a job that fills its segment with text is short", "[node][state]") {
  world w;
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  fill_with_text((*w.find("7")->map));
  REQUIRE(core::validate(as_shared((*w.find("7")->map).rules)) == nullptr);
  w.withdraw("7");
  w.s->heed_scheduler(w.when);
  std::string const text = read(w.run + "/results/7.json");
  CHECK(text.size() <= node::most_result_bytes);
  auto const result = nlohmann::json::parse(text);
  CHECK(result["jobs"][0]["job"] == "7");
  CHECK_FALSE(result.contains("times"));
  CHECK(result["facts"].back() == nlohmann::json{"left out, for it is too large", "channels"});
}

TEST_CASE("many results of one user push out none of another", "[node][state]") {
  if (geteuid() != 0) return;
  constexpr uid_t his = 65011, hers = 65012;
  world w;
  std::string const dir = w.run + "/results/";
  fs::create_directory(dir);
  REQUIRE(replace_file(dir + "hers", "{}", {.reader = hers}));
  fs::last_write_time(dir + "hers", fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (std::size_t i = 1; i < node::most_results; ++i)
    REQUIRE(replace_file(dir + std::to_string(i) + "_his", "{}", {.reader = his}));
  w.announce("7");
  w.start();
  w.withdraw("7");
  w.s->heed_scheduler(w.when);
  CHECK(fs::exists(dir + "7.json"));
  CHECK(fs::exists(dir + "hers"));
  auto const left = std::distance(fs::directory_iterator(dir), fs::directory_iterator());
  CHECK(left == node::most_results);
}

TEST_CASE("a running job whose segment no daemon can read is left alone", "[node][state]") {
  world w;
  pid_t const step = idle_child();
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  bool const has_step = GENERATE(false, true);
  auto const mark = static_cast<std::uint32_t>(step);
  if (has_step) {
    w.s->jobs.add_step(*w.find("7"), mark, true);
    w.withdraw("7");
  }
  (*w.find("7")->map).head.layout = abi::layout_version + 1;
  w.start();
  CHECK(w.find("7") == nullptr);
  CHECK(w.has_folder("7"));
  w.pass(6'000 * ms);
  CHECK(w.has_folder("7"));
  end(step);
  if (!has_step) w.withdraw("7");
  w.pass(two_walks);
  CHECK_FALSE(w.has_folder("7"));
}

TEST_CASE("a job that was left alone goes after all who joined", "[node][state]") {
  world w;
  pid_t const child = idle_child();
  w.start();
  (*w.join("a", child).map).head.layout = abi::layout_version + 1;
  w.start();
  w.pass(6'000 * ms);
  CHECK(w.find("a") == nullptr);
  CHECK(w.has_folder("a"));
  end(child);
  w.pass(two_walks);
  CHECK_FALSE(w.has_folder("a"));
}

/// A process in the background: nobody it descends from is left, and it never joined by itself.
TEST_CASE("a job that was left alone stays while a program has its library", "[node][state]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  bool const is_sanitized = true;  // such a library ends ordinary programs
#else
  bool const is_sanitized = false;
#endif
  if (is_sanitized) return;
  world w;
  w.start();
  pid_t const gone = fork();
  if (gone == 0) _exit(0);
  bool const has_record = GENERATE(true, false);
  node::job& a = w.join("a", gone);
  if (has_record) (*a.map).head.layout = abi::layout_version + 1;
  if (!has_record) write(w.run + "/jobs/a/job.json", R"({"format": 1000})");
  waitpid(gone, nullptr, 0);
  std::string const preload = "LD_PRELOAD=" + w.run + "/jobs/a/libinterpose.so";
  pid_t const child = fork();
  if (child == 0) {
    char const* const environment[] = {preload.c_str(), nullptr};
    close(STDERR_FILENO);  // the loader may not find it
    execle("/bin/sleep", "sleep", "600", nullptr, environment);
    _exit(1);
  }
  std::string const proc = "/proc/" + std::to_string(child);
  // Its name is new a moment before its environment.
  while (read(proc + "/comm") != "sleep\n" || read(proc + "/environ").find(preload) != 0)
    usleep(1'000);
  w.start();
  CHECK(w.find("a") == nullptr);
  CHECK(w.has_folder("a"));
  w.pass(2 * two_walks);
  CHECK(w.has_folder("a"));
  end(child);
  w.pass(two_walks);
  CHECK_FALSE(w.has_folder("a"));
}

TEST_CASE("a job stays over a restart as long as one of all who joined it lives", "[node][state]") {
  world w;
  pid_t const first = idle_child(), last = idle_child();
  w.start();
  w.join("a", first);
  w.join("a", last);
  end(last);
  w.start();
  CHECK(w.find("a") != nullptr);
  w.pass(6'000 * ms);
  CHECK(w.find("a") != nullptr);
  end(first);
  w.pass(6'000 * ms);
  CHECK_FALSE(w.has_folder("a"));
}

TEST_CASE("a scribbled ruleset keeps no policy from being in force", "[node][state]") {
  world w;
  w.start();
  (*w.join("a").map).rules.rule_count = 0xffffffff;
  node::job& b = w.join("b");
  REQUIRE(b.streams.size() == 1);
  b.streams.clear();
  std::string const text = w.policy(R"({"metadata": "500/s"})");
  REQUIRE_NOTHROW(w.s->use_policy(text, {"test"}, w.when));
  CHECK(b.streams.size() == 1);
  CHECK(read(w.config.state_dir + "/policy.json") == text);
  CHECK(w.s->jobs.all().size() == 2);
}

TEST_CASE("an announced job that something is in the way of is made later", "[node][state]") {
  world w;
  std::string const in_the_way = segment::job_dir(w.run, "7") + "/left";
  fs::create_directories(in_the_way);
  w.announce("7");
  w.announce("8");
  write(node::scheduler_dir(w.run) + "/9", "no announcement");
  w.start();
  CHECK(w.find("7") == nullptr);
  CHECK(w.find("8") != nullptr);
  CHECK_THAT(w.s->why_waiting("7"), Catch::StartsWith("cannot be made yet: "));
  auto const tries = [&](std::string const& text) {
    return std::ranges::count_if(w.lines, [&](auto const& l) { return l.find(text) != l.npos; });
  };
  SECTION("soon") {
    fs::remove_all(segment::job_dir(w.run, "7"));
    w.pass(2'000 * ms);
    REQUIRE(w.find("7") != nullptr);
    CHECK_THAT(w.find("7")->record.scheduler->note, Catch::Contains("could not be made before"));
    CHECK(w.s->why_waiting("7").empty());
  }
  SECTION("ever more seldom") {
    w.pass(300 * ms);  // what the kernel told of the folders is heeded
    CHECK(w.s->reasons().heed_ns <= w.when.mono_ns + 1'000 * ms);
    w.pass(70'000 * ms);
    CHECK(tries("announced job cannot be made") == 7);  // after 0, 1, 3, 7, 15, 31 and 63 s
    CHECK(tries("announcement cannot be read") == 1);
  }
}

TEST_CASE("where one of a user finds no room, his others that wait are not read", "[node][state]") {
  if (geteuid() != 0) return;
  constexpr uid_t his = 65011, hers = 65012;
  constexpr int most = node::job_table::most_of_an_owner, more = 20;
  world w;
  for (int i = 0; i < most + more; ++i) w.announce(std::to_string(100 + i), his);
  w.announce("900", hers);
  w.start();
  CHECK(w.s->jobs.find(hers, "900") != nullptr);
  CHECK(w.s->jobs.all().size() == most + 1);
  CHECK_THAT(w.s->why_waiting(std::to_string(99 + most + more)), Catch::StartsWith("waits for"));
  std::string const first = std::to_string(100 + most);
  for (int i = most + 1; i < most + more; ++i)
    write(node::scheduler_dir(w.run) + "/" + std::to_string(100 + i), "garbage");
  w.s->jobs.may_have_room();
  w.s->heed_scheduler(w.when);
  CHECK(w.told("announcement cannot be read") == 0);
  w.s->jobs.remove(*w.s->jobs.find(his, "100"), "test");
  w.withdraw("100");
  while (w.s->jobs.find(his, first) == nullptr) w.pass(100 * ms);  // its files go beside the loop
}

TEST_CASE("a look at announcements ends after some refusals, and the next goes on",
          "[node][state]") {
  world w;
  constexpr unsigned most = node::announced_jobs::most_refused;
  for (unsigned i = 100; i < 110 + most; ++i) {
    fs::create_directories(segment::job_dir(w.run, std::to_string(i)) + "/left");
    w.announce(std::to_string(i));
  }
  w.announce("999");
  w.start();
  CHECK(w.s->why_waiting(std::to_string(99 + most)) != "");
  CHECK(w.s->why_waiting(std::to_string(100 + most)) == "");
  CHECK(w.find("999") == nullptr);
  CHECK(w.s->reasons().heed_ns <= node::now().mono_ns + 500 * ms);
  w.when.mono_ns += 5'000 * ms;  // all are due again
  w.s->heed_scheduler(w.when);
  CHECK(w.find("999") != nullptr);
  CHECK(w.s->why_waiting(std::to_string(109 + most)) != "");
}

TEST_CASE("an announcement that is no short file holds nobody up, and is told of once",
          "[node][state]") {
  world w;
  std::string const dir = node::scheduler_dir(w.run);
  w.announce("1");
  w.announce("6");
  REQUIRE(mkfifo((dir + "/2").c_str(), 0600) == 0);
  fs::create_symlink(dir + "/1", dir + "/3");
  fs::create_directory(dir + "/4");
  write(dir + "/5", std::string(70'000, ' ') + read(dir + "/6"));
  fs::rename(dir + "/6", dir + "/7");  // what it says is of another job
  fs::create_symlink("/dev/full", dir + "/8");
  w.announce("9");
  w.start();
  w.s->heed_scheduler(w.when);
  CHECK(w.find("1") != nullptr);
  CHECK(w.find("9") != nullptr);
  auto const told = [&](std::string const& why) {
    return std::ranges::count_if(w.lines, [&](auto const& l) {
      return l.find("announcement cannot be read") != l.npos && l.find(why) != l.npos;
    });
  };
  CHECK(told("no regular file") == 4);
  CHECK(told("longer than 65536 bytes") == 1);
  CHECK(told("") == 6);
}

TEST_CASE("too many announcements are no reason to let a job go", "[node][state]") {
  world w;
  std::vector<std::string> const jobs = {"1", "2", "3", "4", "5", "6", "7", "8"};
  for (auto const& job : jobs) w.announce(job);
  w.start();
  std::string const dir = node::scheduler_dir(w.run);
  // So many that most lists of 1024 lack one of the eight, in whatever order the folder is.
  for (int i = 0; i < 8000; ++i) fs::create_hard_link(dir + "/7", dir + "/x" + std::to_string(i));
  w.s->heed_scheduler(w.when);
  w.s->heed_scheduler(w.when);
  for (auto const& job : jobs) {
    REQUIRE(w.find(job) != nullptr);
    CHECK(w.find(job)->record.scheduler->is_held);
  }
  CHECK(std::ranges::count_if(w.lines, [](auto const& l) {
          return l.find("too many announcements") != l.npos;
        }) == 1);
  w.withdraw("3");
  w.s->heed_scheduler(w.when);
  CHECK_FALSE(w.find("3")->record.scheduler->is_held);
}

TEST_CASE("what was set for a job that is gone hits no later one of its name", "[node][state]") {
  world w;
  w.start();
  for (char const* name : {"gone", "there"}) {
    node::job const& j = w.join(name);
    w.s->overrides.pause(j.key, j.record.uid, j.record.name, {});
  }
  w.s->keep_overrides(node::now());
  w.s.reset();
  fs::remove_all(segment::job_dir(w.run, "gone"));
  w.start();
  CHECK(w.s->overrides.find(wire::job_key(geteuid(), "gone")) == nullptr);
  CHECK(w.s->overrides.find(wire::job_key(geteuid(), "there")) != nullptr);
  CHECK(read(w.config.state_dir + "/overrides.json").find("gone") == std::string::npos);
}

TEST_CASE("gauges go with the class and the supply they are of", "[node][state]") {
  world w;
  w.start();
  auto const shows = [&](std::string const& series) {
    w.when.mono_ns += 2'000 * ms;
    w.s->tell(w.when);
    return w.metrics.text().find(series) != std::string::npos;
  };
  node::job& j = w.join("j");
  CHECK(shows("sluice_jobs{class=\"none\"} 1"));
  CHECK(shows("sluice_capacity_operations_per_second{resource=\"metadata\",target=\"t\"} 1000"));
  w.s->jobs.remove(j, "test");
  CHECK_FALSE(shows("class=\"none\""));
  CHECK(shows("sluice_jobs{class=\"gold\"} 0"));
  w.s->use_policy(
      R"({"targets": {"t": {"path": ")" + w.at.dir + R"(/data", "capacity": {"data": "1GB/s"}}}})",
      {"test"}, w.when);
  CHECK_FALSE(shows("sluice_jobs{class=\"gold\"}"));
  CHECK_FALSE(shows("sluice_capacity_operations_per_second{resource=\"metadata\""));
  CHECK_FALSE(shows("sluice_granted_operations_per_second{resource=\"metadata\""));
  CHECK(shows("sluice_capacity_bytes_per_second{resource=\"data\""));
}

TEST_CASE("a limit is set for all that its name means, or for nothing", "[node][state]") {
  world w;
  w.config.policy = w.at.dir + "/two.json";
  fs::create_directory(w.at.dir + "/more");
  write(w.config.policy, R"({"targets": {
      "t": {"path": ")" + w.at.dir +
                             R"(/data", "capacity": {"metadata": "1000/s"}},
      "u": {"path": ")" + w.at.dir +
                             R"(/more", "capacity": {"metadata": "1000/s"}}}})");
  w.start();
  node::job& j = w.join("j");
  REQUIRE(j.streams.size() == 2);
  std::string const last = w.s->site.supplies()[j.streams[1].supply].of.name();
  node::node_role role(*w.s);
  auto const set = [&](uid_t uid, std::string const& what) {
    return verbs::set_job(role, {uid, getegid(), getpid(), -1},
                          {{"job", "j"}, {"assignment", what}});
  };
  set(geteuid(), last + "=100/s");
  // Whose it is may not undo that.
  j.record.uid = geteuid() + 1;
  CHECK_THROWS_AS(set(geteuid() + 1, "metadata=50/s"), error);
  CHECK(w.s->overrides.find(j.key)->limits.size() == 1);
  set(geteuid(), "metadata=50/s");
  CHECK(w.s->overrides.find(j.key)->limits.size() == 2);
}

TEST_CASE("how a step ended is told to its user and to operators alone", "[node][state]") {
  world w;
  w.announce("7");
  w.start();
  REQUIRE(w.find("7") != nullptr);
  w.find("7")->record.uid = geteuid() + 1;
  node::node_role role(*w.s);
  auto const end_of = [&](uid_t uid, char const* job) {
    return role.serve_own(verbs::verb::step_end, {uid, getegid(), getpid(), -1}, {{"job", job}});
  };
  CHECK(end_of(geteuid(), "7").contains("line"));
  CHECK(end_of(geteuid() + 1, "7").contains("line"));
  auto const refusal = [&](char const* job) {
    try {
      return end_of(geteuid() + 2, job).dump();
    } catch (error const& e) {
      return std::string(e.what());
    }
  };
  CHECK_THAT(refusal("7"), Catch::StartsWith("no job \"7\" here"));
  CHECK_THAT(refusal("8"), Catch::StartsWith("no job \"8\" here"));
}

TEST_CASE("a segment that its owner lets grow gets its size again", "[node][state]") {
  world w;
  w.start();
  node::job& j = w.join("j");
  std::string const path = segment::segment_path(w.run, j.folder);
  std::string const paths = fs::path(path).parent_path() / "paths";
  segment::add_path_area(path, geteuid(), getegid(), 2);
  fs::resize_file(paths, sizeof(abi::path_area) + (64 << 20));
  SECTION("longer") { fs::resize_file(path, sizeof(abi::segment) + (64 << 20)); }
  SECTION("room beyond its end") {
    int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    int const made = fallocate(fd, FALLOC_FL_KEEP_SIZE, sizeof(abi::segment), 64 << 20);
    close(fd);
    if (made != 0) return;  // not on this file system
  }
  w.pass(6'000 * ms);
  struct stat st = {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK(std::size_t(st.st_size) == sizeof(abi::segment));
  CHECK(fs::file_size(paths) == sizeof(abi::path_area));
  CHECK(std::size_t(st.st_blocks) * 512 < sizeof(abi::segment) + (32 << 20));
  REQUIRE(w.find("j") != nullptr);
  CHECK_FALSE(w.find("j")->is_broken());
}

TEST_CASE("users with all their jobs leave the last eighth to others", "[node][state]") {
  using node::has_room;
  constexpr auto all = node::job_table::most_jobs, kept = node::job_table::kept_jobs;
  constexpr auto most = node::job_table::most_of_an_owner;
  CHECK(has_room(0, 0, false));
  CHECK(has_room(all - kept - 1, most - 1, false));
  CHECK_FALSE(has_room(most, most, false));
  CHECK_FALSE(has_room(all - kept, 1, false));
  CHECK(has_room(all - kept, 0, false));
  CHECK(has_room(all - 1, 0, false));
  CHECK_FALSE(has_room(all, 0, false));
  CHECK(has_room(all - 1, all - 1, true));
  CHECK_FALSE(has_room(all, 0, true));
}

TEST_CASE("who has many uids has two journals at a time", "[node][state]") {
  using journals = std::map<uid_t, gid_t>;
  auto const owner = [](uid_t uid) { return uid >= 5000 ? uid_t{7} : uid; };
  CHECK(node::journals_given({{7, 70}, {8, 80}, {7, 71}}, {}, {}) == journals{{7, 70}, {8, 80}});
  CHECK(node::journals_given({{5002, 1}, {5001, 2}, {7, 3}, {5002, 4}, {8, 5}}, {}, owner) ==
        journals{{5001, 2}, {5002, 1}, {8, 5}});
  // Those whose jobs are over, and whose processes do not end, take their places.
  CHECK(node::journals_given({{7, 3}, {8, 5}}, {{5001, true}, {5002, true}}, owner) ==
        journals{{8, 5}});
  CHECK(node::journals_given({{5002, 1}, {8, 5}}, {{5001, true}, {5002, true}}, owner) ==
        journals{{5002, 1}, {8, 5}});
  std::map<uid_t, bool> folders;
  for (uid_t uid = 5000; uid < 5008; ++uid) folders[uid] = false;
  CHECK(node::journals_given({{5008, 1}, {5003, 1}}, folders, owner) == journals{{5003, 1}});
}

TEST_CASE("the name service is asked for a user once in a while", "[node][state]") {
  unsigned asked = 0;
  runtime::user_names names([&](uid_t uid) {
    ++asked;
    return "u" + std::to_string(uid);
  });
  for (std::int64_t t = 0; t < 100; ++t) CHECK(names.of(7, t * 1'000 * ms) == "u7");
  CHECK(asked == 1);
  CHECK(names.of(8, 0) == "u8");
  CHECK(names.of(7, 1'000'000 * ms) == "u7");
  CHECK(asked == 3);
}

namespace {

/// What the loop takes for the keeper of journals.
struct fake_keeper {
  int ends[2] = {-1, -1};
  fake_keeper() {
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  }
  ~fake_keeper() {
    for (int fd : ends) close(fd);
  }
  fake_keeper(fake_keeper const&) = delete;

  void say(uid_t user, node::journal_phase phase, bool is_recovered) const {
    node::journal_report r;
    r.uid = user;
    r.phase = phase;
    r.is_recovered = is_recovered ? 1 : 0;
    REQUIRE(send(ends[1], &r, sizeof r, 0) == sizeof r);
  }
  bool hears(node::journal_verb verb, uid_t user) const {
    node::journal_word word = {};
    return recv(ends[1], &word, sizeof word, 0) == sizeof word && word.verb == verb &&
           word.uid == user;
  }
  bool hears_nothing() const {
    char byte = 0;
    return recv(ends[1], &byte, 1, 0) < 0;
  }
};

}  // namespace

TEST_CASE("jobs wait for what a crash left in the journal of their user", "[node][state]") {
  using node::journal_phase;
  fake_keeper k;
  world w;
  uid_t const us = geteuid();
  w.config.journal = w.at.dir + "/journals";
  w.services.journal_keeper = k.ends[0];
  write(w.config.policy, R"({"targets": {"t": {"path": ")" + w.at.dir +
                             R"(/data", "order": "durable", "capacity": {"metadata": "1000/s"}}},
                             "classes": {"gold": {"t": {"metadata": {"weight": 2}}}}})");
  w.announce("7");
  w.start();
  CHECK_FALSE(w.s->journals.is_settled());
  CHECK(w.find("7") == nullptr);
  k.say(us, journal_phase::recovering, false);
  k.say(node::nobody, journal_phase::listed, false);
  w.s->heed_journals(w.when);
  REQUIRE(w.s->journals.is_settled());
  CHECK(w.find("7") == nullptr);
  CHECK_THAT(w.s->why_waiting("7"), Catch::Contains("is being brought home"));
  CHECK_THROWS_WITH(w.join("mine"), Catch::Contains("is being brought home"));
  CHECK(w.s->journals.home_of(us + 1) == node::home_state::fine);
  w.pass(500 * ms);
  CHECK(k.hears_nothing());
  SECTION("it comes home") {
    k.say(us, journal_phase::serving, true);
    w.s->heed_journals(w.when);
    REQUIRE(w.find("7") != nullptr);
    CHECK(w.find("7")->wants_journal);
    CHECK(k.hears(node::journal_verb::want, us));
    CHECK(w.join("mine").wants_journal);
    w.withdraw("7");
    w.s->heed_scheduler(w.when);
    w.pass(5'000 * ms);
    CHECK(w.find("7") == nullptr);
    CHECK(k.hears_nothing());  // of the other one
    w.s->jobs.remove(*w.find("mine"), "it was ours");
    w.pass(10 * ms);
    CHECK(k.hears(node::journal_verb::leave, us));
    k.say(us, journal_phase::none, true);
    w.s->heed_journals(w.when);
    CHECK(w.s->journals.users().empty());
    w.join("next");
    w.pass(10 * ms);
    CHECK(k.hears(node::journal_verb::want, us));
    CHECK(w.s->journals.users().empty());  // nothing is known of his yet
  }
  SECTION("it cannot") { k.say(us, journal_phase::pausing, false); }
  SECTION("it hangs") {
    CHECK(w.s->reasons().heed_ns <= w.when.mono_ns + 60'000 * ms);
    w.when.mono_ns += 61'000 * ms;
  }
  if (w.find("7") == nullptr && !w.s->journals.users().empty()) {
    w.s->heed_journals(w.when);
    REQUIRE(w.find("7") != nullptr);
    CHECK_FALSE(w.find("7")->wants_journal);
    CHECK_THAT(w.find("7")->record.scheduler->note, Catch::Contains("is not recovered"));
    CHECK_THROWS_WITH(w.join("mine"), Catch::Contains("is not recovered"));
    CHECK(k.hears_nothing());
  }
}
