// SPDX-License-Identifier: Apache-2.0
// Threads for work that may take as long as a disk: the loop that takes requests hands work over,
// and gets the result back as a call in the loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::journal {

/// Calls for the loop, from any thread.
class mailbox {
 public:
  void post(std::function<void()> call);
  /// Runs all that is there; false when nothing was.
  bool run();
  bool is_empty() const;
  /// Counts posts: the loop's futex.
  std::atomic<std::uint32_t>& bell() { return bell_; }

 private:
  mutable std::mutex mutex_;
  std::deque<std::function<void()>> calls_;
  std::atomic<std::uint32_t> bell_ = 0;
};

class thread_pool {
 public:
  thread_pool(mailbox& to, unsigned threads);
  ~thread_pool();
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;

  /// `work` in a thread of the thread_pool, then `then(result)` in the loop.
  void run(std::function<int()> work, std::function<void(int)> then);
  /// The same, before all that waits. One thread is kept for it, unless there is no other.
  void run_first(std::function<int()> work, std::function<void(int)> then);
  unsigned under_way() const { return under_way_; }

 private:
  struct job {
    std::function<int()> work;
    std::function<void(int)> then;
  };
  void add(std::deque<job>& to, std::function<int()> work, std::function<void(int)> then);
  void serve();
  bool may_take_next() const { return !jobs_.empty() && busy_ < most_busy_; }

  mailbox& to_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<job> first_, jobs_;
  unsigned busy_ = 0, most_busy_ = 1;  // threads with one of jobs_
  bool is_over_ = false;
  unsigned under_way_ = 0;  // of the loop
  std::vector<std::thread> threads_;
};

}  // namespace sluice::journal
