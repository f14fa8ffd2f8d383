// SPDX-License-Identifier: Apache-2.0
// The daemon of a node as a whole, without socket and parent, in a folder of its own.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "lib/scratch.h"
#include "node/clock.h"
#include "node/state.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::test {

inline constexpr std::int64_t ms = 1'000'000;

inline void write(std::string const& path, std::string const& text) { std::ofstream(path) << text; }

inline std::string read(std::string const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct world {
  scratch at;
  std::string run = segment::run_dir(at.dir + "/run");
  std::vector<std::string> lines;
  runtime::logger log{runtime::level::info, [this](std::string_view l) { lines.emplace_back(l); },
                      [] { return 0; }};
  runtime::notifier notify;
  runtime::metric_table metrics;
  runtime::services services{log, notify, metrics};
  runtime::config config;
  std::optional<node::state> s;
  node::moment when = node::now();

  world() {
    config.name = "n1";
    config.run_dir = run;
    config.state_dir = at.dir + "/state";
    config.policy = at.dir + "/policy.json";
    std::filesystem::create_directories(config.state_dir);
    std::filesystem::create_directories(at.dir + "/data");
    std::filesystem::create_directory(node::scheduler_dir(run));
    chmod(node::scheduler_dir(run).c_str(), 0700);
    write(config.policy, policy(R"({"metadata": "1000/s"})"));
  }
  std::string policy(std::string const& capacity) const {
    return R"({"targets": {"t": {"path": ")" + at.dir + R"(/data", "capacity": )" + capacity +
           R"(}}, "classes": {"gold": {"t": {"metadata": {"weight": 2}}}}})";
  }
  node::state& start() {
    s.reset();
    return s.emplace(config, services);
  }
  void announce(std::string const& job, uid_t uid = geteuid()) {
    write(node::scheduler_dir(run) + "/" + job,
          R"({"job":")" + job + R"(","uid":)" + std::to_string(uid) + R"(,"class":"gold"})");
  }
  void withdraw(std::string const& job) {
    std::filesystem::remove(node::scheduler_dir(run) + "/" + job);
  }
  void pass(std::int64_t span_ns) {
    for (std::int64_t t = 0; t < span_ns; t += 10 * ms) {
      when.boot_ns += 10 * ms;
      when.mono_ns += 10 * ms;
      s->watch(when);
    }
  }
  node::job& join(char const* name, pid_t pid = getpid(), uid_t uid = geteuid()) {
    node::join_request r;
    r.name = name;
    return *s->jobs.join({uid, uid == geteuid() ? getegid() : uid, pid, -1}, r, s->site).who;
  }
  node::job* find(std::string const& job) { return s->jobs.find(geteuid(), job); }
  std::ptrdiff_t told(std::string const& text) const {
    return std::ranges::count_if(lines, [&](auto const& l) { return l.find(text) != l.npos; });
  }
  bool has_folder(std::string const& job) const {
    return std::filesystem::exists(segment::job_dir(run, job));
  }
};

}  // namespace sluice::test
