// SPDX-License-Identifier: Apache-2.0
// What a request to join asks of /proc: about who asks alone, however many have joined before.
#include "node/job_table.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "lib/scratch.h"
#include "segment/run_dir.h"

using namespace sluice;

namespace {

constexpr std::size_t most_marks = 64;  // that a job keeps of those who joined, or of its steps

/// Of the job of its own user; how often anybody was looked at is counted.
struct counted_table {
  test::scratch at;
  runtime::logger log{runtime::level::error, [](std::string_view) {}, [] { return 0; }};
  node::site_state site{"n1"};
  std::shared_ptr<std::atomic<int>> looks = std::make_shared<std::atomic<int>>(0);
  std::map<std::uint32_t, std::uint32_t> parents;  // that are not the real ones
  node::job_table jobs{at.dir, at.dir + "/none.so", "n1", log, {}, {}, nullptr, look()};

  counted_table() { std::filesystem::create_directories(segment::jobs_dir(at.dir)); }
  node::process_teller::look look() {
    return [this, looks = looks](std::uint32_t pid, bool with_uid) {
      ++*looks;
      auto found = node::read_stat(pid, with_uid);
      if (auto const p = parents.find(pid); found && p != parents.end()) found->parent = p->second;
      return found;
    };
  }
  static local::peer who(pid_t pid) { return {geteuid(), getegid(), pid, -1}; }
  node::job& join(pid_t pid = getpid()) {
    node::join_request request;
    request.name = "j";
    return *jobs.join(who(pid), request, site).who;
  }
  node::job& schedule() {
    node::announcement a;
    a.job = "7";
    a.uid = geteuid();
    return jobs.schedule(a, site);
  }
  int looks_of(auto const& doing) {
    int const before = *looks;
    doing();
    return *looks - before;
  }
};

/// Processes that do nothing until they are ended.
struct idle_children {
  std::vector<pid_t> pids;
  explicit idle_children(std::size_t count) {
    while (pids.size() < count) pids.push_back(start());
  }
  ~idle_children() {
    for (pid_t p : pids) end(p);
  }
  void end_one() {
    end(pids.back());
    pids.pop_back();
  }

 private:
  static pid_t start() {
    pid_t const child = fork();
    if (child != 0) return child;
    pause();
    _exit(0);
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

}  // namespace

TEST_CASE("a process that joins again is kept once, and looked at alone", "[node][joiners]") {
  counted_table t;
  idle_children others(10);
  node::job& j = t.join();
  for (pid_t pid : others.pids) t.join(pid);
  CHECK(j.record.joiners.size() == 11);
  for (int i = 0; i < 100; ++i) CHECK(t.looks_of([&] { t.join(); }) == 1);
  CHECK(j.record.joiners.size() == 11);
}

TEST_CASE("where many have joined, those that have ended make room unread", "[node][joiners]") {
  counted_table t;
  node::job& j = t.join();
  idle_children others(most_marks - 1);
  for (pid_t pid : others.pids) t.join(pid);
  REQUIRE(j.record.joiners.size() == most_marks);
  others.end_one();
  idle_children more(2);
  CHECK(t.looks_of([&] { t.join(more.pids[0]); }) == 1);
  CHECK(j.record.joiners.size() == most_marks);
  REQUIRE(j.record.joiners.back().pid == static_cast<std::uint32_t>(more.pids[0]));
  // All of them live, or have numbers that are others' by now: the newest is kept, whoever goes.
  CHECK(t.looks_of([&] { t.join(more.pids[1]); }) == 1);
  CHECK(j.record.joiners.size() == most_marks);
  CHECK(j.record.joiners.back().pid == static_cast<std::uint32_t>(more.pids[1]));
}

TEST_CASE("a later process of its number takes the place of one that joined", "[node][joiners]") {
  counted_table t;
  node::job& j = t.join();
  process_mark const self = j.record.joiners.at(0);
  j.record.joiners = {{self.pid, self.start_ticks - 1}};
  t.join();
  CHECK(j.record.joiners == std::vector<process_mark>{self});
}

TEST_CASE("a step is kept once, and looks at no other", "[node][joiners]") {
  counted_table t;
  idle_children others(most_marks);
  node::job& j = t.schedule();
  for (pid_t pid : others.pids)
    CHECK(t.looks_of([&] { t.jobs.add_step(j, static_cast<std::uint32_t>(pid), false); }) == 1);
  auto const self = static_cast<std::uint32_t>(getpid());
  CHECK(t.looks_of([&] { t.jobs.add_step(j, self, false); }) == 1);
  CHECK(j.record.scheduler->steps.size() == most_marks);
  others.end_one();
  for (int i = 0; i < 2; ++i) t.jobs.add_step(j, self, false);
  CHECK(j.record.scheduler->steps.size() == most_marks);
}

TEST_CASE("who is below a step is found, and not asked for where there is none",
          "[node][joiners]") {
  counted_table t;
  idle_children child(1);
  node::job& j = t.schedule();
  pid_t const pid = child.pids.front();
  CHECK(t.looks_of([&] { t.jobs.scheduled_job_of(t.who(pid), ""); }) == 0);
  t.jobs.add_step(j, static_cast<std::uint32_t>(getpid()), false);
  t.parents[static_cast<std::uint32_t>(getpid())] = static_cast<std::uint32_t>(pid);  // for ever
  node::job* found = nullptr;
  CHECK(t.looks_of([&] { found = t.jobs.scheduled_job_of(t.who(pid), ""); }) ==
        int{node::process_teller::longest_line});
  CHECK(found == &j);
}
