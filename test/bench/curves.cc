// SPDX-License-Identifier: Apache-2.0
// Watches what every job of a world may use: reads the curves of one channel in all segments below
// a directory (DIR/NODE/jobs/JOB/segment), once a millisecond, and prints a line whenever one
// changes. At the end (SIGTERM) it tells the largest sum ever seen, which is what capacity means.
//
//   curves DIR CHANNEL [CAPACITY]   lines:  T_NS NODE/JOB RATE SERVED   (per second; -1 open;
//   served since start); T_NS over SUM: NODE/JOB=RATE… when the sum comes to be above the capacity,
//   T_NS within when it no longer is; the last line:   max SUM AT_NS samples N over M
//
// A sample reads all curves twice and takes the lesser rate of each, so that a decrease here
// followed by an increase there, both while we look, is not taken for an overload.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "core/token_bucket.h"
#include "segment/segment_file.h"

namespace {

namespace fs = std::filesystem;
using namespace sluice;

volatile sig_atomic_t is_over = 0;

struct watched {
  segment::mapping segment;
  unsigned channel;
  core::unit_kind unit;
  ino_t inode;  // a job of the same name may have taken its place
  double shown = -2;
  double rate = 0;  // of this sample
};

std::map<std::string, watched> all;

double units_per(core::unit_kind unit) {
  return unit == core::unit_kind::ops ? double(core::op_units) : 1.0;
}

/// Per second; 0 when paused, -1 when open.
double rate_now(watched const& w, std::int64_t now_ns) {
  core::curve c;
  core::read_curve(w.segment->bucket[w.channel], c);
  core::curve_settings const& s = c.set;
  bool const over = s.lease_end_ns != 0 && now_ns >= s.lease_end_ns;
  if (over && s.after_lease == 1) return -1;
  std::uint64_t rate_q40 = over ? s.after_rate_q40 : s.rate_q40;
  if (s.own_at_ns != 0 && now_ns >= s.own_at_ns) rate_q40 = s.own_rate_q40;
  return double(rate_q40) / double(std::uint64_t{1} << 40) * 1e9 / units_per(w.unit);
}

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
      // A job that is being made has a dot name; it would be counted again under its own.
      if (all.contains(name) || job.path().filename().native().starts_with('.')) continue;
      try {
        auto s = segment::mapping::open((job.path() / "segment").string());
        for (unsigned i = 0; i < s->rules.channel_count; ++i)
          if (core::view(s->rules, s->rules.channel[i].name) == channel) {
            auto const unit = static_cast<core::unit_kind>(s->rules.channel[i].unit);
            all.emplace(name, watched{std::move(s), i, unit, inode_of(job.path() / "segment")});
            break;
          }
      } catch (std::exception const&) {
        continue;  // half made, or gone again
      }
    }
}

void forget_ended_jobs(fs::path const& dir) {
  std::erase_if(all, [&](auto const& entry) {
    std::size_t const slash = entry.first.find('/');
    fs::path const job =
        dir / entry.first.substr(0, slash) / "jobs" / entry.first.substr(slash + 1);
    return inode_of(job / "segment") != entry.second.inode;
  });
}

double sample(std::int64_t now_ns) {
  for (auto& [name, w] : all) w.rate = rate_now(w, now_ns);
  double sum = 0;
  for (auto& [name, w] : all) {
    w.rate = std::min(w.rate, rate_now(w, now_ns));
    sum += std::max(w.rate, 0.0);
  }
  return sum;
}

void show_changes(std::int64_t now_ns) {
  for (auto& [name, w] : all) {
    if (w.rate == w.shown) continue;
    double const served =
        double(core::served_units(w.segment->bucket[w.channel], now_ns)) / units_per(w.unit);
    fmt::print("{} {} {:.3f} {:.0f}\n", now_ns, name, w.rate, served);
    w.shown = w.rate;
  }
}

/// Tells when an overload begins, and of whom it is made, and when it ends.
void show_overload(std::int64_t now_ns, double sum, bool is_above, bool& was_above) {
  if (is_above && !was_above) {
    fmt::print("{} over {:.1f}:", now_ns, sum);
    for (auto const& [name, w] : all)
      if (w.rate > 0) fmt::print(" {}={:.1f}", name, w.rate);
    fmt::print("\n");
  }
  if (!is_above && was_above) fmt::print("{} within\n", now_ns);
  was_above = is_above;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: curves DIR CHANNEL [CAPACITY]\n");
    return 2;
  }
  double const capacity = argc > 3 ? std::atof(argv[3]) : 0;
  struct sigaction stop = {};
  stop.sa_handler = [](int) { is_over = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  sigaction(SIGINT, &stop, nullptr);
  double most = 0;
  std::int64_t most_at_ns = 0;
  std::uint64_t samples = 0, over = 0;
  bool was_above = false;
  for (std::uint64_t round = 0; is_over == 0; ++round) {
    forget_ended_jobs(argv[1]);
    if (round % 20 == 0) look_for_jobs(argv[1], argv[2]);
    std::int64_t const now_ns = segment::monotonic_ns();
    double sum = sample(now_ns);
    if (capacity > 0 && sum > capacity) {  // a job may have gone while we looked
      forget_ended_jobs(argv[1]);
      sum = 0;
      for (auto const& [name, w] : all) sum += std::max(w.rate, 0.0);
    }
    show_changes(now_ns);
    ++samples;
    bool const is_above = capacity > 0 && sum > capacity * 1.000001 + 1;
    if (is_above) ++over;
    show_overload(now_ns, sum, is_above, was_above);
    if (sum > most) most = sum, most_at_ns = now_ns;
    if (round % 20 == 0) std::fflush(stdout);
    timespec const pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  fmt::print("max {:.3f} {} samples {} over {}\n", most, most_at_ns, samples, over);
  return 0;
}
