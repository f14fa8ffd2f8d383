// SPDX-License-Identifier: Apache-2.0
// The jobs of a world that have one channel: their segments below a directory
// (DIR/NODE/jobs/JOB/segment), found again and again while jobs come and go. What a tool remembers
// of a job is `Own`.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "segment/mapping.h"

namespace sluice::bench {

template <class Own>
struct watched {
  segment::mapping segment;
  unsigned channel;
  ino_t inode;  // a job of the same name may have taken its place
  Own own;
};

/// By NODE/JOB.
template <class Own>
class watched_jobs {
 public:
  watched_jobs(std::string dir, std::string channel)
      : dir_(std::move(dir)), channel_(std::move(channel)) {}

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

  void look() {
    std::error_code failed;
    for (auto const& node : std::filesystem::directory_iterator(dir_, failed))
      for (auto const& job : std::filesystem::directory_iterator(node.path() / "jobs", failed)) {
        std::string const file = job.path().filename().string();
        std::string const name = node.path().filename().string() + "/" + file;
        // A job that is being made has a dot name; it would be counted again under its own.
        if (all_.contains(name) || file.starts_with('.')) continue;
        try {
          add(name, job.path() / "segment");
        } catch (std::exception const&) {
          continue;  // half made, or gone again
        }
      }
  }

  void forget_ended() {
    std::erase_if(all_, [&](auto const& entry) {
      std::size_t const slash = entry.first.find('/');
      return inode_of(dir_ / entry.first.substr(0, slash) / "jobs" / entry.first.substr(slash + 1) /
                      "segment") != entry.second.inode;
    });
  }

 private:
  static ino_t inode_of(std::filesystem::path const& file) {
    struct stat s = {};
    return stat(file.c_str(), &s) == 0 ? s.st_ino : 0;
  }

  void add(std::string const& name, std::filesystem::path const& file) {
    auto s = segment::mapping::open(file.string());
    auto const rules = segment::rules_of(*s);
    for (unsigned i = 0; i < rules->channel_count; ++i)
      if (core::view(*rules, rules->channel[i].name) == channel_) {
        all_.emplace(name, watched<Own>{std::move(s), i, inode_of(file), {}});
        break;
      }
  }

  std::filesystem::path dir_;
  std::string channel_;
  std::map<std::string, watched<Own>> all_;
};

}  // namespace sluice::bench
