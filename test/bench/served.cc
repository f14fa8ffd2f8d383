// SPDX-License-Identifier: Apache-2.0
// What every job of a world was let through on one channel, and whether anybody waits, over time:
// read from the segments below a directory (DIR/NODE/jobs/JOB/segment). For the experiments.
//
//   served DIR CHANNEL [EVERY_MS]   lines:  T_NS NODE/JOB AMOUNT WAITS   (operations or bytes since
//   the job began; 1 while a request waits), one per job each EVERY_MS (10), until SIGTERM.
//
// A job that ended says its last amount once more and is then left out.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "node/meter.h"
#include "segment/jobs.h"
#include "segment/segment_file.h"

namespace {

namespace fs = std::filesystem;
using namespace sluice;

volatile sig_atomic_t is_over = 0;

struct watched {
  segment::mapping segment;
  unsigned channel;
  ino_t inode;  // a job of the same name may have taken its place
};

std::map<std::string, watched> all;

ino_t inode_of(fs::path const& file) {
  struct stat s = {};
  return stat(file.c_str(), &s) == 0 ? s.st_ino : 0;
}

void look_for_jobs(fs::path const& dir, std::string const& channel) {
  std::error_code failed;
  for (auto const& node : fs::directory_iterator(dir, failed))
    for (auto const& job : fs::directory_iterator(node.path() / "jobs", failed)) {
      std::string const name =
          node.path().filename().string() + "/" + job.path().filename().string();
      // What is being made has a name with a dot, and another one later.
      if (all.contains(name) || job.path().filename().string()[0] == '.') continue;
      try {
        auto s = segment::mapping::open((job.path() / "segment").string());
        for (unsigned i = 0; i < s->rules.channel_count; ++i)
          if (core::view(s->rules, s->rules.channel[i].name) == channel) {
            all.emplace(name, watched{std::move(s), i, inode_of(job.path() / "segment")});
            break;
          }
      } catch (std::exception const&) {
        continue;  // half made, or gone again
      }
    }
}

void show(std::string const& name, watched const& w, std::int64_t now_ns) {
  auto const sums = segment::sum(*w.segment);
  bool const waits = node::look(*w.segment, w.channel, now_ns).blocked;
  fmt::print("{} {} {} {:d}\n", now_ns, name, sums.channel[w.channel].amount, waits);
}

bool is_gone(fs::path const& dir, std::string const& name, watched const& w) {
  std::size_t const slash = name.find('/');
  return inode_of(dir / name.substr(0, slash) / "jobs" / name.substr(slash + 1) / "segment") !=
         w.inode;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: served DIR CHANNEL [EVERY_MS]\n");
    return 2;
  }
  std::int64_t const every_ns = (argc > 3 ? std::max(std::atoi(argv[3]), 1) : 10) * 1'000'000ll;
  struct sigaction stop = {};
  stop.sa_handler = [](int) { is_over = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  sigaction(SIGINT, &stop, nullptr);
  std::int64_t next_ns = segment::monotonic_ns();
  for (std::uint64_t round = 0; is_over == 0; ++round) {
    look_for_jobs(argv[1], argv[2]);
    for (auto const& [name, w] : all) show(name, w, segment::monotonic_ns());
    std::erase_if(all,
                  [&](auto const& entry) { return is_gone(argv[1], entry.first, entry.second); });
    std::fflush(stdout);
    next_ns += every_ns;
    timespec const until = {next_ns / 1'000'000'000, next_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  return 0;
}
