// SPDX-License-Identifier: Apache-2.0
// What the loop is told of processes when reading of some of them hangs.
#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

#include "abi/segment.h"
#include "base/clock.h"
#include "node/process_teller.h"

using namespace sluice;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Process N of this machine began at 10 N. Some end when they are read, and hang whoever reads of
/// them until they go on.
struct machine {
  struct shared {
    std::promise<void> go_on;
    std::shared_future<void> wait{go_on.get_future()};
    std::set<std::uint32_t> hung;
    std::map<std::uint32_t, std::uint32_t> uid;
    std::atomic<int> reads = 0, reads_of_uid = 0, waiting = 0;
    std::mutex lock;
    std::set<std::uint32_t> ended;
  };
  std::shared_ptr<shared> all = std::make_shared<shared>();

  node::process_teller::look look() {
    return [all = all](std::uint32_t pid, bool with_uid) -> std::optional<node::process_stat> {
      ++all->reads;
      all->reads_of_uid += with_uid;
      if (all->hung.contains(pid)) {
        {
          std::lock_guard const hold(all->lock);
          all->ended.insert(pid);
        }
        ++all->waiting;
        all->wait.wait();
        --all->waiting;
      }
      if (pid >= 1000) return std::nullopt;
      return node::process_stat{1, pid * 10};
    };
  }
  node::process_teller::owner owner() {
    return [all = all](std::uint32_t pid) {
      std::lock_guard const hold(all->lock);
      if (pid >= 1000 || all->ended.contains(pid)) return no_uid;
      return all->uid.contains(pid) ? all->uid.at(pid) : 0;
    };
  }
};

}  // namespace

TEST_CASE("processes: those that live, and those that do not", "[node][processes]") {
  machine m;
  node::process_teller t({}, m.look(), m.owner());
  std::uint32_t const pids[] = {5, 2000, 7};
  auto const said = t.ask(pids);
  REQUIRE(said.size() == 3);
  CHECK(said[0].found->start_ticks == 50);
  CHECK((said[1].is_said && !said[1].found));
  CHECK(said[2].found->start_ticks == 70);
  CHECK(t.mark_of(5) == process_mark{5, 50});
  CHECK_FALSE(t.mark_of(2000).has_value());
  CHECK(t.may_live({5, 50}));
  CHECK_FALSE(t.may_live({5, 51}));
  CHECK(t.may_live({5, 0}));
  CHECK_FALSE(t.may_any_live({}));
  CHECK(m.all->reads_of_uid == 0);
  t.ask(pids, true);
  CHECK(m.all->reads_of_uid == 3);
}

TEST_CASE("processes: of whom nothing was said is not a later one of its number",
          "[node][processes]") {
  machine m;
  m.all->hung = {6};
  node::process_teller t({}, m.look(), m.owner());
  auto const mark = t.mark_of(6);
  REQUIRE(mark);
  m.all->go_on.set_value();
  auto const of_start = [&](std::uint64_t ticks) {
    return node::process_teller({},
                                [ticks](std::uint32_t, bool) {
                                  return node::process_stat{1, ticks};
                                })
        .may_live(*mark);
  };
  std::uint64_t const now = abi::ticks_of(boot_ns());
  CHECK(of_start(1));
  CHECK_FALSE(of_start(now + 1000));
  CHECK_FALSE(t.mark_of(0));
}

TEST_CASE("processes: a thread that runs too late keeps nobody from being looked at",
          "[node][processes]") {
  machine m;
  std::promise<void> run;
  std::shared_future<void> const may_run = run.get_future().share();
  auto const late = [may_run](std::function<void()> task) {
    std::thread([may_run, task = std::move(task)] {
      may_run.wait();
      task();
    }).detach();
    return true;
  };
  node::process_teller t(late, m.look(), m.owner());
  for (int i = 0; i < 3; ++i) CHECK_FALSE(t.ask(5).is_said);
  run.set_value();
  std::int64_t const begun_ns = steady_ns();
  while (!t.ask(5).is_said || !t.ask(7).is_said) REQUIRE(steady_ns() - begun_ns < 30'000 * ms);
  CHECK(t.ask(5).found->start_ticks == 50);
}

TEST_CASE("processes: one that hangs holds up nobody, and is taken to live", "[node][processes]") {
  machine m;
  m.all->hung = {6};
  m.all->uid = {{6, 64001}};
  node::process_teller t({}, m.look(), m.owner());
  std::int64_t const begun_ns = steady_ns();
  std::uint32_t const pids[] = {5, 6, 7, 8};
  auto const said = t.ask(pids);
  CHECK(said[0].is_said);
  CHECK_FALSE(said[1].is_said);
  CHECK(said[2].found->start_ticks == 70);
  CHECK(said[3].found->start_ticks == 80);
  CHECK(t.may_live({6, 1}));
  CHECK(t.mark_of(6)->pid == 6);
  int const reads = m.all->reads;
  CHECK_FALSE(t.ask(6).is_said);
  CHECK(m.all->reads == reads);  // a thread waits for it already
  m.all->go_on.set_value();
  while (!t.ask(6).is_said) REQUIRE(steady_ns() - begun_ns < 60'000 * ms);
  CHECK_FALSE(t.may_live({6, 1}));
}

TEST_CASE("processes: one user's do not use up the threads of all", "[node][processes]") {
  machine m;
  for (std::uint32_t pid = 100; pid < 200; ++pid) {
    m.all->hung.insert(pid);
    m.all->uid[pid] = 64001;
  }
  node::process_teller t({}, m.look(), m.owner());
  for (std::uint32_t pid = 100; pid < 200; ++pid) CHECK_FALSE(t.ask(pid).is_said);
  CHECK(m.all->waiting <= int(node::process_teller::most_stuck_of));
  CHECK(t.ask(5).is_said);
  m.all->go_on.set_value();
}

TEST_CASE("processes: those that hang are their user's after their end", "[node][processes]") {
  machine m;
  m.all->hung = {6, 7};
  m.all->uid = {{6, 64001}, {7, 64001}, {8, 64001}};
  node::process_teller t({}, m.look(), m.owner());
  for (std::uint32_t pid : {6, 7}) CHECK_FALSE(t.ask(pid).is_said);
  CHECK(t.ask(2000).is_said);
  CHECK_FALSE(t.may_live({2000, 5}));
  CHECK_FALSE(t.ask(8).is_said);
  m.all->go_on.set_value();
}

TEST_CASE("processes: those above one are one question, and one that hangs is asked once",
          "[node][processes]") {
  machine m;
  m.all->hung = {95};
  m.all->uid = {{95, 64001}};
  std::atomic<int> threads = 0;
  auto const start = [&threads](std::function<void()> task) {
    ++threads;
    std::thread(std::move(task)).detach();
    return true;
  };
  auto const child_of_the_one_before = [look = m.look()](std::uint32_t pid, bool with_uid) {
    auto found = look(pid, with_uid);
    if (found) found->parent = pid - 1;
    return found;
  };
  node::process_teller t(start, child_of_the_one_before, m.owner());
  CHECK(t.line_of(4) == std::vector<process_mark>{{4, 40}, {3, 30}, {2, 20}});
  CHECK(t.line_of(0).empty());
  CHECK(t.line_of(1).empty());
  CHECK(t.line_of(2000).empty());
  CHECK(t.line_of(900).size() == node::process_teller::longest_line);
  CHECK(threads == 1);
  CHECK(t.line_of(97) == std::vector<process_mark>{{97, 970}, {96, 960}});
  int const reads = m.all->reads;
  CHECK(t.line_of(97) == std::vector<process_mark>{{97, 970}, {96, 960}});
  CHECK(m.all->reads == reads + 2);  // a thread waits for the next one already
  CHECK(t.line_of(95).empty());
  m.all->go_on.set_value();
}

TEST_CASE("processes: this one, by the kernel", "[node][processes]") {
  node::process_teller t;
  auto const self = static_cast<std::uint32_t>(getpid());
  CHECK(t.mark_of(self) == process_mark{self, start_ticks(self)});
  CHECK(t.ask(self).found->parent == static_cast<std::uint32_t>(getppid()));
  CHECK(t.ask(self).found->uid == no_uid);
  CHECK(t.line_of(self).at(1).pid == static_cast<std::uint32_t>(getppid()));
  CHECK(t.ask(std::span(&self, 1), true).front().found->uid == getuid());
}
