// SPDX-License-Identifier: Apache-2.0
// Segments on disk: complete when visible, private, refused when damaged, cleared away when dead.
#include "segment/segment_file.h"
#include "base/process_mark.h"
#include "segment/mapping.h"
#include "segment/sums.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "lib/scratch.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

using test::scratch;

unsigned mode_of(std::string const& path) {
  struct stat st = {};
  return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

policy::compiled limits() {
  policy::compile_input input;
  input.channels.push_back(policy::parse_limit("open=1000/s"));
  return policy::compile(input, policy::this_machine());
}

/// The pid of a process that has ended.
std::uint32_t dead_pid() {
  pid_t const child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return static_cast<std::uint32_t>(child);
}

}  // namespace

TEST_CASE("run directory: another user's runtime directory is not the default") {
  scratch const at;
  char const* const set = std::getenv("XDG_RUNTIME_DIR");
  std::string const before = set != nullptr ? set : "";
  auto const by_default = [](std::string const& dir) {
    setenv("XDG_RUNTIME_DIR", dir.c_str(), 1);
    return segment::default_run_dir();
  };
  CHECK(by_default(at.dir) == at.dir + "/sluice");
  CHECK(by_default(at.dir + "/missing") != at.dir + "/missing/sluice");
  if (geteuid() == 0 && chown(at.dir.c_str(), 12345, 12345) == 0)
    CHECK(by_default(at.dir) == "/run/sluice");
  else if (geteuid() != 0)
    CHECK(by_default("/") != "//sluice");
  set != nullptr ? setenv("XDG_RUNTIME_DIR", before.c_str(), 1) : unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE("segment: made private and complete, once") {
  scratch const at;
  std::string const run = segment::run_dir(at.dir + "/run");
  REQUIRE(segment::create(run, "a", "/lib/x.so", limits()));
  CHECK_FALSE(segment::create(run, "a", "/lib/x.so", limits()));
  CHECK(mode_of(run) == 0700);
  CHECK(mode_of(segment::job_dir(run, "a")) == 0700);
  CHECK(mode_of(segment::segment_path(run, "a")) == 0600);
  CHECK(fs::read_symlink(segment::job_dir(run, "a") + "/libinterpose.so") == "/lib/x.so");
  auto const s = segment::mapping::open(segment::segment_path(run, "a"));
  CHECK(segment::job_name(*s) == "a");
  CHECK(segment::rules_of(*s)->channel_count == 1);
  CHECK(core::current(as_shared(s->bucket[0])).cap_units >= 1);
  CHECK(std::distance(fs::directory_iterator(segment::jobs_dir(run)), fs::directory_iterator()) ==
        1);
}

TEST_CASE("segment: a damaged file is refused") {
  scratch const at;
  std::string const run = segment::run_dir(at.dir);
  REQUIRE(segment::create(run, "a", "/lib/x.so", limits()));
  std::string const path = segment::segment_path(run, "a");
  SECTION("magic") { segment::mapping::open(path)->head.magic_word.store(1); }
  SECTION("layout") { segment::mapping::open(path)->head.layout = 99; }
  SECTION("rules") { segment::mapping::open(path)->rules.rule_count = 1000; }
  SECTION("short") { fs::resize_file(path, 100); }
  SECTION("empty") { fs::resize_file(path, 0); }
  SECTION("link") {
    fs::rename(path, path + "2");
    fs::create_symlink(path + "2", path);
  }
  CHECK_THROWS_AS(segment::mapping::open(path), error);
}

TEST_CASE("segment: counters are summed over owned and common shards") {
  scratch const at;
  std::string const run = segment::run_dir(at.dir);
  REQUIRE(segment::create(run, "a", "/lib/x.so", limits()));
  auto const s = segment::mapping::open(segment::segment_path(run, "a"));
  s->head.shards_used.store(2);
  s->owned[0].call[3].calls.store(5);
  s->owned[1].call[3].calls.store(6);
  s->owned[2].call[3].calls.store(100);  // never claimed
  s->common[1].call[3].calls.store(7);
  s->owned[0].channel[0].waited_ns.store(9);
  CHECK(segment::sum(*s).call[3].calls == 11);  // nobody says that he counts in a common one
  s->head.commons_used.store(1);
  CHECK(segment::sum(*s).call[3].calls == 18);
  CHECK(segment::sum(*s).channel[0].waited_ns == 9);
  s->head.shards_used.store(0xffffffff);
  CHECK(segment::sum(*s).call[3].calls == 118);
}

TEST_CASE("segment: dead jobs go, live ones and strangers stay") {
  scratch const at;
  std::string const run = segment::run_dir(at.dir);
  for (char const* job : {"dead", "maker", "member", "reused", "stranger"})
    REQUIRE(segment::create(run, job, "/lib/x.so", limits()));
  auto const open = [&](char const* job) {
    return segment::mapping::open(segment::segment_path(run, job));
  };
  std::uint32_t const gone = dead_pid();
  for (char const* job : {"dead", "member", "stranger"}) open(job)->head.holder = gone;
  auto const self = static_cast<std::uint32_t>(getpid());
  CHECK(open("maker")->head.holder == abi::holder_word(self, sluice::start_ticks(self)));
  open("reused")->head.holder = abi::holder_word(self, 1);
  open("member")->near_process[7].pid.store(static_cast<std::uint32_t>(getpid()));
  open("member")->near_process[7].start_ticks.store(
      abi::not_after | sluice::start_ticks(static_cast<std::uint32_t>(getpid())));
  open("stranger")->near_process[0].pid.store(gone);
  open("stranger")->near_process[0].pid_space.store(1);  // another pid namespace: cannot be judged
  open("dead")->near_process[0].pid.store(static_cast<std::uint32_t>(getpid()));
  open("dead")->near_process[0].start_ticks.store(1);  // the pid was used again
  open("dead")->near_process[1].pid.store(static_cast<std::uint32_t>(getpid()));
  open("dead")->near_process[1].start_ticks.store(abi::not_after | 1);  // as here
  fs::create_directory(segment::jobs_dir(run) + "/.new-" + std::to_string(gone));
  segment::collect_garbage(run, segment::collector::command);
  CHECK(segment::list_jobs(run) == std::vector<std::string>{"maker", "member", "stranger"});
  CHECK(std::distance(fs::directory_iterator(segment::jobs_dir(run)), fs::directory_iterator()) ==
        3);
}

TEST_CASE("segment: a run directory others can write or LD_PRELOAD cannot name is refused") {
  scratch const at;
  for (char const* name : {"with blank", "with:colon", "with$dollar"})
    CHECK_THROWS_AS(segment::run_dir(at.dir + "/" + name), error);
  fs::create_directory(at.dir + "/open");
  chmod((at.dir + "/open").c_str(), 0770);
  CHECK_THROWS_WITH(segment::run_dir(at.dir + "/open"),
                    Catch::Contains("can be written by others"));
  std::ofstream(at.dir + "/file") << "x";
  CHECK_THROWS_AS(segment::run_dir(at.dir + "/file"), error);
  if (geteuid() == 0) {
    fs::create_directory(at.dir + "/theirs");
    REQUIRE(chown((at.dir + "/theirs").c_str(), 1234, 1234) == 0);
    CHECK_THROWS_WITH(segment::run_dir(at.dir + "/theirs"), Catch::Contains("belongs to uid 1234"));
  }
}

TEST_CASE("segment: job names that could leave the directory are refused") {
  for (char const* name : {"", ".", "..", "a/b", "-x", "a b", "a:b", "a\nb"})
    CHECK_THROWS_AS(segment::check_job_name(name), error);
  CHECK_NOTHROW(segment::check_job_name("42.batch_0-x"));
  CHECK_NOTHROW(segment::check_job_name(std::string(63, 'n')));
  CHECK_THROWS_WITH(segment::check_job_name(std::string(64, 'n')), Catch::Contains("up to 63"));
}
