// SPDX-License-Identifier: Apache-2.0
// Runs walks through /proc (escape_walk.h) in threads beside the loop: reading the memory map of a
// process waits for its file systems, and a user's may never answer.
// What stays true: the loop never waits for a walk; a walk that hangs is left to itself and the
// next one avoids the process that held it up. At most `most_stuck` threads hang.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "node/escape_walk.h"
#include "runtime/log.h"

namespace sluice::node {

class escape_worker {
 public:
  /// Starts a thread that may look at other users' processes. False: there is none to be had.
  using starter = std::function<bool(std::function<void()>)>;
  static constexpr std::size_t most_stuck = 8, most_stuck_of = 2;
  static constexpr std::int64_t patience_ns = 10'000'000'000;  // for one process

  /// `owner_of`: of whom no more than `most_stuck_of` hang.
  escape_worker(std::shared_ptr<proc const> from, starter start, runtime::logger& log,
                owner_lookup owner_of = {});

  bool is_idle() const { return current_ == nullptr; }
  /// Begins a walk, where one can be had. What to avoid and what was known is filled in.
  void begin(watch_list list, std::int64_t now_ns);
  /// The report, once, when the walk is complete. Gives up a walk that hangs.
  std::optional<watch_report> take(std::int64_t now_ns);

 private:
  struct task;
  void give_up();
  void forget_finished();

  std::shared_ptr<proc const> from_;
  starter start_;
  runtime::logger& log_;
  owner_lookup owner_of_;
  std::shared_ptr<task> current_;
  std::vector<std::shared_ptr<task>> stuck_;
  std::uint64_t seen_steps_ = 0;
  std::int64_t moved_ns_ = 0;  // when it was seen to get on
  std::set<std::uint64_t> known_spaces_;
  moved_by_process moved_;
};

}  // namespace sluice::node
