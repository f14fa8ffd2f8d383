// SPDX-License-Identifier: Apache-2.0
#include "kept.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sluice::crash {

namespace {

constexpr char const* words[] = {"write", "flush", "mark", "refused"};

void say_entries(recorder const& disk, std::string const& path) {
  std::ofstream out(path);
  out << "# index, seconds of CLOCK_MONOTONIC as in the kernel's messages, what, disk or stream, "
         "offset or epoch, bytes\n";
  for (std::size_t i = 0; i < disk.entries(); ++i) {
    entry const& e = disk.at(i);
    char line[128];
    std::snprintf(line, sizeof line, "%zu %.6f %s %u %llu %llu\n", i,
                  static_cast<double>(e.at_ns) / 1e9, words[e.what], e.stream,
                  static_cast<unsigned long long>(e.offset),
                  static_cast<unsigned long long>(e.bytes));
    out << line;
  }
}

}  // namespace

void keep_loss(recorder& disk, power_cut const& cut, std::string const& beside) {
  namespace fs = std::filesystem;
  char const* const keep = std::getenv("KEEP");
  if (keep == nullptr || fs::exists(std::string(keep) + "/entries")) return;
  fs::path const to = keep;
  std::error_code ignored;
  fs::create_directories(to, ignored);
  say_entries(disk, to / "entries");
  disk.cut(cut.count, cut.seed, cut.subset);
  auto const also = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  for (auto const* name : {"said", "recover.out", "run"})
    fs::copy(fs::path(beside) / name, to / name, also, ignored);
  std::string const image =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(disk.image_fd());
  std::string const copy = "dmesg >'" + (to / "dmesg").string() + "'; cp --sparse=always " + image +
                           " '" + (to / "image").string() + "'";
  if (std::system(copy.c_str()) != 0) std::printf("the image could not be copied to %s\n", keep);
  std::printf("kept in %s: the cut behind %zu entries\n", keep, cut.count);
}

}  // namespace sluice::crash
