// SPDX-License-Identifier: Apache-2.0
#include "base/rights.h"

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace sluice {

namespace {

/// One task at a time lies on it.
class desk {
 public:
  void hand_in(task_ref const& task) {
    std::lock_guard const turn(turn_);
    std::unique_lock lock(mutex_);
    task_ = &task;
    changed_.notify_all();
    changed_.wait(lock, [&] { return task_ == nullptr; });
    errno = error_;
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  [[noreturn]] void serve() {
    for (std::unique_lock lock(mutex_);; changed_.notify_all()) {
      changed_.wait(lock, [&] { return task_ != nullptr; });
      try {
        (*task_)();
      } catch (...) {
        thrown_ = std::current_exception();
      }
      error_ = errno;
      task_ = nullptr;
    }
  }

 private:
  std::mutex turn_, mutex_;
  std::condition_variable changed_;
  task_ref const* task_ = nullptr;
  std::exception_ptr thrown_;
  int error_ = 0;
};

desk* kept = nullptr;  // written before there are other threads; lives as long as the process
// A process that the thread forks has no other thread, and what it does has these rights.
thread_local bool is_kept_here = false;

}  // namespace

void keep_rights(std::function<bool()> const& settle) {
  std::promise<bool> settled;
  auto answer = settled.get_future();
  auto* const made = new desk;
  std::thread([&settle, &settled, made] {
    bool has_any = false;
    pthread_setname_np(pthread_self(), "sluiced-rights");
    try {
      has_any = is_kept_here = settle();
      settled.set_value(has_any);
    } catch (...) {
      settled.set_exception(std::current_exception());
    }
    if (has_any) made->serve();
    delete made;
  }).detach();
  if (answer.get()) kept = made;
}

void with_rights(task_ref task) {
  if (kept == nullptr || is_kept_here) return task();
  kept->hand_in(task);
}

}  // namespace sluice
