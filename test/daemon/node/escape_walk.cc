// SPDX-License-Identifier: Apache-2.0
// Who is in a job and who of it escapes, told from a /proc made up here.
#include "node/escape_walk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "node/census.h"
#include "node/escape_worker.h"

using namespace sluice;

namespace {

using dead_by_folder = std::map<std::string, node::foreign_claims>;

struct fake_proc : node::proc {
  struct process {
    node::process_facts facts;
    std::string preload;
    node::process_doings doings;
    std::uint32_t inner = 0;
  };
  std::map<std::uint32_t, process> all;
  mutable std::atomic<unsigned> looked = 0;

  void add(std::uint32_t pid, std::uint32_t parent, std::string preload = {},
           node::process_doings d = {}) {
    all[pid] = {{pid, parent, 10 * pid, 5, "p" + std::to_string(pid), 0}, std::move(preload), d, 0};
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
  node::process_inside inside(std::uint32_t pid) const override {
    return {all.at(pid).inner, all.at(pid).facts.uid};
  }
  node::process_doings doings(std::uint32_t pid, std::span<std::string const>) const override {
    ++looked;
    return all.at(pid).doings;
  }
};

node::process_doings doing(std::uint64_t bytes, bool library, bool is_static, bool ring = false) {
  node::process_doings d;
  d.is_readable = true;
  d.bytes = bytes;
  d.calls = 10;
  d.has_library = library;
  d.is_static = is_static;
  d.has_ring = ring;
  return d;
}

node::watch_report report_of(node::proc const& p, node::watch_list const& list) {
  node::walk_progress progress;
  return node::walk(p, list, progress);
}

std::map<std::string, std::vector<node::escaped>> escapes(fake_proc const& p,
                                                          std::vector<node::watched_job> jobs) {
  node::watch_list list;
  list.jobs = std::move(jobs);
  list.sees_all = true;
  std::map<std::string, std::vector<node::escaped>> out;
  for (auto const& [folder, suspects] : report_of(p, list).suspects)
    out[folder] = node::judge(suspects, 1 << 20);
  return out;
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
  auto const found = escapes(p, {{"a", "/run/jobs/a", {100, 106}, {}}});
  REQUIRE(found.size() == 1);
  std::map<std::uint32_t, std::string> why;
  for (auto const& e : found.at("a")) why[e.pid] = e.why;
  CHECK(why == std::map<std::uint32_t, std::string>{{101, "static program"},
                                                    {102, "library not loaded"},
                                                    {103, "static program"},
                                                    {106, "io_uring"}});
}

TEST_CASE("who became a program without the library escapes, whatever its slot says",
          "[node][escape]") {
  fake_proc p;
  for (std::uint32_t pid : {100u, 101u, 102u})
    p.add(pid, 1, "", doing(9 << 20, pid == 102, pid == 100));
  for (std::uint32_t pid : {100u, 102u}) p.all[pid].doings.is_mapped = true;
  auto const found = escapes(p, {{"a", "/a", {100, 101, 102}, {}}});  // of 101 not all was seen
  REQUIRE(found.at("a").size() == 1);
  CHECK(found.at("a")[0].pid == 100);
  CHECK(found.at("a")[0].why == "static program");
}

TEST_CASE("what moved before a run waited, or while it was attached, does not escape",
          "[node][escape]") {
  fake_proc p;
  p.add(100, 1, "", doing(9 << 20, false, false));  // a wrapper that became a run, which waits
  p.add(101, 1, "", doing(9 << 20, true, false));   // a shell, attached
  p.add(102, 1, "", doing(9 << 20, false, false));  // a joiner that does not say it waits
  p.all[100].facts.name = "sluice";
  for (auto& [pid, of] : p.all) of.doings.is_mapped = true;
  node::watch_list list;
  list.jobs = {{"a", "/a", {101}, {{100, 1000}, {102, 1020}}}};
  auto const found = [&] {
    auto report = report_of(p, list);
    list.moved = std::move(report.moved);
    std::set<std::uint32_t> pids;
    for (auto const& s : report.suspects["a"]) pids.insert(s.pid);
    return pids;
  };
  CHECK(found() == std::set<std::uint32_t>{102});
  p.all[101].doings.has_library = false;  // it became a program without
  p.all[100].doings.bytes += 512 << 10;
  CHECK(found() == std::set<std::uint32_t>{102});
  SECTION("more of it does") {}
  SECTION("also when it was not to be looked at meanwhile") {
    list.avoided.marks = {{100, 1000}, {101, 1010}};
    CHECK(found().size() == 3);
    list.avoided.marks.clear();
  }
  for (std::uint32_t pid : {100u, 101u}) p.all[pid].doings.bytes += 1 << 20;
  CHECK(found() == std::set<std::uint32_t>{100, 101, 102});
  p.all[100].facts.name = "other";
  CHECK(found() == std::set<std::uint32_t>{100, 101, 102});
}

TEST_CASE("what a run moves while it waits is told at the next walk", "[node][escape]") {
  auto const p = std::make_shared<fake_proc>();
  p->add(100, 1, "", doing(9 << 20, false, false));
  p->all[100].facts.name = "sluice";
  runtime::logger log{runtime::level::info, [](std::string_view) {}, [] { return 0; }};
  auto const at_once = [](std::function<void()> const& task) { return task(), true; };
  node::escape_worker w(p, at_once, log);
  node::watch_list list;
  list.jobs = {{"a", "/a", {}, {{100, 1000}}}};
  auto const walked = [&] {
    w.begin(list, 0);
    return w.take(0)->suspects["a"].size();
  };
  CHECK(walked() == 0);
  CHECK(walked() == 0);
  p->all[100].doings.bytes += 2 << 20;
  CHECK(walked() == 1);
}

TEST_CASE("a stranger who writes a job's library into his environment is not in it",
          "[node][escape]") {
  fake_proc p;
  p.add(101, 1, "/run/jobs/a/libinterpose.so", doing(9 << 20, false, true));
  p.all[101].facts.uid = 7;
  std::vector<node::watched_job> jobs = {{"a", "/run/jobs/a", {}, {}}};
  for (std::uint32_t owner : {0u, 6u, 7u}) {
    jobs[0].uid = owner;
    CHECK(escapes(p, jobs).contains("a") == (owner == 7));
  }
}

TEST_CASE("a walk tells which jobs have a process, or may have one", "[node][escape]") {
  fake_proc p;
  p.add(1, 0);
  p.add(100, 1, "/run/jobs/a/libinterpose.so");
  p.add(101, 1);
  for (auto& [pid, of] : p.all) of.facts.uid = 7;
  p.all.at(1).facts.uid = 0;
  node::watch_list list;
  for (char const* const name : {"a", "b", "c"})
    list.jobs.push_back({name, std::string("/run/jobs/") + name, {}, {}});
  list.jobs[0].uid = list.jobs[1].uid = 7;
  list.jobs[2].uid = 8;
  node::walk_progress progress;
  CHECK(node::walk(p, list, progress).inhabited == std::set<std::string>{"a"});
  // Of a process that must not be looked at nobody knows what it names.
  list.avoided.marks.insert({101, 1010});
  CHECK(node::walk(p, list, progress).inhabited == std::set<std::string>{"a", "b"});
}

TEST_CASE("a joiner counts only as long as it is the same process", "[node][escape]") {
  fake_proc p;
  p.add(100, 1, "", doing(9 << 20, false, true));
  CHECK(escapes(p, {{"a", "/a", {}, {{100, 1000}}}}).at("a").size() == 1);
  CHECK(escapes(p, {{"a", "/a", {}, {{100, 999}}}}).empty());
}

TEST_CASE("a joiner of another user is in no job but root's", "[node][escape]") {
  fake_proc p;
  p.add(100, 1, "", doing(9 << 20, false, true));
  p.all[100].facts.uid = 7;
  std::vector<node::watched_job> jobs = {{"a", "/a", {}, {{100, 1000}}}};
  for (std::uint32_t owner : {0u, 6u, 7u}) {
    jobs[0].uid = owner;
    CHECK(escapes(p, jobs).contains("a") == (owner != 6));
  }
}

TEST_CASE("a loop of parents ends, a crowd is cut", "[node][escape]") {
  fake_proc p;
  p.add(10, 11);
  p.add(11, 10);
  p.add(100, 1);
  for (std::uint32_t pid = 1000; pid < 1500; ++pid)
    p.add(pid, 100, "", doing(9 << 20, false, true));
  auto const found = escapes(p, {{"a", "/a", {100}, {}}});
  CHECK(found.at("a").size() == 64);
}

TEST_CASE("an attached process escapes when it moves what nobody counted", "[node][escape]") {
  auto d = doing(1ull << 30, true, false);
  CHECK(node::why_escaped(d, true, 0) == nullptr);  // pipes, files that nobody controls
  d.has_file = true;
  CHECK(node::why_escaped(d, true, 1 << 20) != nullptr);
  CHECK(node::why_escaped(d, true, 300 << 20) == nullptr);
  CHECK(node::why_escaped(d, true, ~0ull) == nullptr);
  d.bytes = 60 << 20;
  CHECK(node::why_escaped(d, true, 0) == nullptr);
  d.mapped_bytes = 1 << 30;
  CHECK(node::why_escaped(d, true, ~0ull) == std::string("moves bytes unseen (mmap)"));
}

TEST_CASE("mapped files of targets are summed, code is left out", "[node][escape]") {
  std::vector<std::string> const targets = {"/data", "/scratch/x"};
  std::string const maps =
      "10000-30000 rw-s 00000000 08:01 5    /data/a file\n"
      "40000-50000 r--p 00000000 08:01 6    /data/lib.so\n"
      "50000-60000 r-xp 00010000 08:01 6    /data/lib.so\n"
      "70000-80000 rw-p 00000000 00:00 0    [heap]\n"
      "80000-90000 r--s 00000000 08:01 7    /database/b\n"
      "90000-a0000 r--s 00000000 08:01 8    /scratch/x\n"
      "garbage\nffff-0000 r--s 0 0 0 /data/c\n10-20";
  CHECK(node::mapped_below(maps, targets) == 0x30000);
  CHECK(node::mapped_below(maps, {}) == 0);
}

TEST_CASE("a pid namespace is gone when nobody shows in it any more", "[node][escape]") {
  fake_proc p;
  p.add(1, 0);
  p.add(300, 1, "", doing(9 << 20, true, false));
  p.add(301, 300, "", doing(9 << 20, false, true));
  p.all[300].facts.pid_space = p.all[301].facts.pid_space = 77;
  p.all[300].inner = 1;
  p.all[301].inner = 2;
  node::watch_list all;
  all.jobs = {{"a", "/a", {}, {}, {{77, {1, 3000}}, {78, {1, 5}}}}};
  node::watch_list some = all;
  all.sees_all = true;
  auto found = report_of(p, all);
  CHECK(found.foreign_found.at("a") == 1);
  CHECK(found.dead == dead_by_folder{{"a", {{78, {1, 5}}}}});
  auto const escaped = node::judge(found.suspects.at("a"), 0);
  REQUIRE(escaped.size() == 1);  // the child of the one in the slot
  CHECK(escaped[0].pid == 301);
  found = report_of(p, some);
  CHECK(found.dead.empty());  // 78 may be where we cannot look
  some.known_spaces = found.known_spaces;
  p.all[1].facts.pid_space = 0;  // one that hides
  CHECK(report_of(p, all).dead.empty());
  p.all.erase(300);
  p.all.erase(301);
  CHECK(report_of(p, some).dead == dead_by_folder{{"a", {{77, {1, 3000}}}}});  // it was seen once
}

TEST_CASE("what a user writes into his slots are no processes of his", "[node][escape]") {
  constexpr std::uint32_t ann = 64001, bob = 64002;
  fake_proc p;
  p.add(1, 0);
  for (std::uint32_t pid : {300u, 301u}) p.add(pid, 1, "", doing(9 << 20, true, false));
  p.all[300].facts.pid_space = p.all[301].facts.pid_space = 77;
  p.all[300].inner = 1;
  p.all[301].inner = 2;
  p.all[300].facts.uid = bob;
  p.all[301].facts.uid = ann;
  node::foreign_process const bobs = {77, {1, 3000}}, none = {77, {9, 0}}, made_up = {5555, {3, 0}};
  node::watch_list list;
  list.sees_all = true;
  list.jobs = {{"his", "/his", {}, {}, {bobs}, {}, bob},
               {"hers", "/hers", {}, {}, {bobs, {77, {2, 3010}}, none, made_up}, {}, ann}};
  auto found = report_of(p, list);
  CHECK(found.foreign_found == std::map<std::string, std::uint32_t>{{"his", 1}, {"hers", 1}});
  CHECK(found.dead == dead_by_folder{{"hers", {bobs, none, made_up}}});
  p.all[1].facts.pid_space = 0;  // root's, and hides: it is not hers
  CHECK(report_of(p, list).dead == found.dead);
  p.all[1].facts.uid = ann;
  CHECK(report_of(p, list).dead.empty());
}

TEST_CASE("slots of a dead pid namespace keep no job alive", "[node][escape]") {
  auto const s = std::make_unique<abi::segment>();
  s->near_process[0].pid = 1;
  s->near_process[0].pid_space = 6;
  s->near_process[9].pid = 1;
  s->near_process[9].pid_space = 7;
  node::census c([](auto const& claimed, uid_t) { return std::vector<bool>(claimed.size(), true); },
                 5);
  node::census::walk first, second;
  unsigned budget = 64;
  REQUIRE(c.step(*s, 0, {}, budget, first));
  CHECK(first.found.processes == 2);
  REQUIRE(c.step(*s, 0, {{6, {1, 0}}}, budget, second));
  CHECK(second.found.processes == 1);
  CHECK(second.found.foreign_processes == 1);
  CHECK(second.found.foreign.size() == 2);  // the dead one is asked for again
}

TEST_CASE("a process that held up a walk is gone round, and told of", "[node][escape]") {
  fake_proc p;
  p.add(1, 0);
  p.add(100, 1, "", doing(100, true, false));
  p.add(101, 100, "", doing(100, true, false));
  p.add(102, 100, "", doing(100, true, false));
  p.all[102].facts.uid = 7;
  node::watch_list list;
  list.jobs = {{"a", "/a", {100}, {}}};
  list.avoided.marks = {{101, 1010}};
  list.avoided.owners = {70};
  list.avoided.owner_of = [](uid_t uid) { return uid * 10; };
  auto const found = node::judge(report_of(p, list).suspects.at("a"), 0);
  REQUIRE(found.size() == 2);
  CHECK(found[0].pid == 101);
  CHECK(found[1].pid == 102);
  CHECK(found[0].why.starts_with("cannot be looked at"));
  CHECK(p.looked == 1);
}

TEST_CASE("a walk that hangs is left to itself", "[node][escape]") {
  struct hanging_proc final : fake_proc {
    mutable std::mutex lock;
    mutable std::condition_variable changed;
    std::set<std::uint32_t> hung;
    mutable unsigned hanging = 0;
    node::process_doings doings(std::uint32_t pid,
                                std::span<std::string const> targets) const override {
      std::unique_lock hold(lock);
      if (hung.contains(pid)) ++hanging;
      changed.notify_all();
      changed.wait(hold, [&] { return !hung.contains(pid); });
      return fake_proc::doings(pid, targets);
    }
  };
  auto const p = std::make_shared<hanging_proc>();
  p->add(1, 0);
  for (std::uint32_t pid = 100; pid < 104; ++pid) {
    p->add(pid, 1, "", doing(9 << 20, false, true));
    p->all[pid].facts.uid = pid == 103 ? 8 : 1000 + pid;  // the first three are of one user
  }
  p->hung = {100, 101};
  std::vector<std::string> lines;
  runtime::logger log{runtime::level::info, [&](std::string_view l) { lines.emplace_back(l); },
                      [] { return 0; }};
  std::vector<std::thread> threads;
  node::escape_worker w(
      p,
      [&](std::function<void()> task) {
        threads.emplace_back(std::move(task));
        return true;
      },
      log, [](uid_t uid) { return uid > 1000 ? 7 : uid; });
  node::watch_list list;
  list.jobs = {{"a", "/a", {}, {{100, 1000}, {101, 1010}, {102, 1020}, {103, 1030}}}};
  std::int64_t now_ns = 0;
  auto const hang = [&](unsigned nth) {
    w.begin(list, now_ns);
    std::unique_lock hold(p->lock);
    p->changed.wait(hold, [&] { return p->hanging == nth; });
    CHECK_FALSE(w.take(now_ns));
    CHECK_FALSE(w.is_idle());
    now_ns += node::escape_worker::patience_ns;
    CHECK_FALSE(w.take(now_ns));
    CHECK(w.is_idle());
  };
  auto const finish = [&] {
    w.begin(list, now_ns);
    std::optional<node::watch_report> report;
    while (!(report = w.take(now_ns))) std::this_thread::yield();
    return *report;
  };
  hang(1);  // at 100
  hang(2);  // at 101
  CHECK(lines.size() == 2);
  auto found = node::judge(finish().suspects.at("a"), 0);
  REQUIRE(found.size() == 4);
  CHECK(found[2].why.starts_with("cannot be looked at"));  // another of the same user
  CHECK(found[3].why == "static program");
  {
    std::lock_guard const hold(p->lock);
    p->hung.clear();
    p->changed.notify_all();
  }
  for (auto& t : threads) t.join();
  threads.clear();
  found = node::judge(finish().suspects.at("a"), 0);
  for (auto const& e : found) CHECK(e.why == "static program");
  for (auto& t : threads) t.join();
}

TEST_CASE("a real process is found by its fds, maps and namespace", "[node][escape]") {
  char name[] = "/tmp/sluice-proc.XXXXXX";
  std::string const dir = mkdtemp(name);
  std::vector<std::string> const targets = {dir};
  auto const self = static_cast<std::uint32_t>(getpid());
  node::real_proc const real;
  CHECK(!real.doings(self, targets).has_file);
  int const fd = open((dir + "/file").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, 1 << 20) == 0);
  void* const at = mmap(nullptr, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  auto const seen = real.doings(self, targets);
  CHECK(seen.has_file);
  CHECK(seen.mapped_bytes == 1 << 20);
  CHECK(seen.is_mapped);
  CHECK(real.facts(self)->pid_space != 0);
  CHECK(real.inside(self).pid == self);
  munmap(at, 1 << 20);
  close(fd);
  std::filesystem::remove_all(dir);
}

TEST_CASE("heads are counted in bounded steps", "[node][escape]") {
  auto const s = std::make_unique<abi::segment>();
  for (unsigned i = 0; i < 1000; ++i) {
    abi::process_of(*s, i * 4).pid = i + 1;
    abi::process_of(*s, i * 4).start_ticks = i % 2;
    abi::process_of(*s, i * 4).pid_space = 5;
  }
  s->near_process[1].pid = 9999;
  s->near_process[1].pid_space = 6;  // of a container: it cannot be looked at
  unsigned lookups = 0;
  node::census c(
      [&](auto const& claimed, uid_t) {
        std::vector<bool> lives;
        for (auto const& p : claimed) lives.push_back(p.start_ticks == 1);
        lookups += static_cast<unsigned>(claimed.size());
        return lives;
      },
      5);
  node::census::walk walk;
  unsigned steps = 0;
  for (bool complete = false; !complete; ++steps) {
    unsigned budget = 64;
    unsigned const before = lookups;
    complete = c.step(*s, 0, {}, budget, walk);
    REQUIRE(lookups - before <= 64);
  }
  CHECK(steps == 16);
  CHECK(walk.found.processes == 501);
  CHECK(walk.found.pids.size() == 500);
}

TEST_CASE("slots that nobody holds are read in bounded steps as well", "[node][escape]") {
  auto const s = std::make_unique<abi::segment>();
  node::census c([](auto const&, uid_t) { return std::vector<bool>{}; }, 5);
  node::census::walk walk;
  unsigned budget = 3;
  CHECK_FALSE(c.step(*s, 0, {}, budget, walk));
  CHECK(walk.at == 3 * node::census::slots_of_claim);
  budget = 64;
  CHECK(c.step(*s, 0, {}, budget, walk));
  CHECK(budget == 64 - abi::process_slots / node::census::slots_of_claim + 3);
}

TEST_CASE("claims of other pid namespaces are counted in bounded steps as well", "[node][escape]") {
  auto const s = std::make_unique<abi::segment>();
  for (unsigned i = 0; i < abi::process_slots; ++i) {
    abi::process_of(*s, i).pid = i + 1;
    abi::process_of(*s, i).pid_space = 6;
  }
  node::census c([](auto const&, uid_t) { return std::vector<bool>{}; }, 5);
  node::census::walk walk;
  std::size_t before = 0;
  for (bool is_complete = false; !is_complete; before = walk.found.foreign.size()) {
    unsigned budget = 64;
    is_complete = c.step(*s, 0, {{6, {7, 0}}}, budget, walk);
    REQUIRE(walk.found.foreign.size() - before <= 64);
  }
  CHECK(walk.found.foreign.size() == abi::process_slots);
  CHECK(walk.found.processes == abi::process_slots - 1);
}
