// SPDX-License-Identifier: Apache-2.0
// Which processes live, for the loop, which reads no /proc of a user. /proc/PID/stat takes a
// reference to the memory of the process, and if it ends meanwhile, the reader is the one who takes
// that memory down: with pages of a file system whose server is stopped, it waits for ever.
// So another thread reads, and the loop waits for it a moment.
// What stays true: no call takes longer than `patience_ns` times three; a process that held up a
// thread is not read again until that thread is back; at most `most_stuck` threads hang,
// `most_stuck_of` for one user. Of whom nothing can be said it is assumed that he lives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/process_mark.h"
#include "node/proc.h"

namespace sluice::node {

class process_teller {
 public:
  using look = std::function<std::optional<process_stat>(std::uint32_t pid, bool with_uid)>;
  /// Of a process that lives, else no_uid. Called in any thread.
  using owner = std::function<std::uint32_t(std::uint32_t pid)>;
  /// Starts a thread. False: there is none to be had.
  using starter = std::function<bool(std::function<void()>)>;
  static constexpr std::size_t most_stuck = 32, most_stuck_of = 2;
  static constexpr std::int64_t patience_ns = 100'000'000;
  static constexpr std::size_t longest_line = 64;

  struct answer {
    bool is_said = false;
    std::optional<process_stat> found = {};  // none, and said: there is no such process
  };

  /// `start` empty: threads of our own.
  explicit process_teller(starter start = {}, look read = read_stat, owner of = owner_of);
  ~process_teller();
  process_teller(process_teller const&) = delete;
  process_teller& operator=(process_teller const&) = delete;

  std::vector<answer> ask(std::span<std::uint32_t const> pids, bool with_uid = false);
  answer ask(std::uint32_t pid);

  /// The mark of a process. Where nothing could be said its start is one of abi::is_start(): not
  /// after now. None: it has ended, or `pid` is 0.
  std::optional<process_mark> mark_of(std::uint32_t pid);
  /// It and those it descends from, nearest first, as far as can be said: one question for all.
  std::vector<process_mark> line_of(std::uint32_t pid);
  bool may_live(process_mark const& p);
  bool may_any_live(std::vector<process_mark> const& all);

 private:
  struct desk;
  struct batch;
  struct avoided;
  bool has_desk();
  avoided to_avoid() const;
  bool wait_for(std::shared_ptr<batch> const& b);

  starter start_;
  look read_;
  owner owner_;
  std::shared_ptr<desk> desk_;  // its thread may outlive us
  std::vector<std::shared_ptr<batch>> stuck_;
};

}  // namespace sluice::node
