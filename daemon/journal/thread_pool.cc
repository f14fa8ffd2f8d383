// SPDX-License-Identifier: Apache-2.0
#include "journal/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <system_error>

namespace sluice::journal {

void mailbox::post(std::function<void()> call) {
  {
    std::lock_guard const held(mutex_);
    calls_.push_back(std::move(call));
  }
  bell_.fetch_add(1);
  syscall(SYS_futex, &bell_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool mailbox::run() {
  std::deque<std::function<void()>> calls;
  {
    std::lock_guard const held(mutex_);
    calls.swap(calls_);
  }
  for (auto& call : calls) call();
  return !calls.empty();
}

bool mailbox::is_empty() const {
  std::lock_guard const held(mutex_);
  return calls_.empty();
}

thread_pool::thread_pool(mailbox& to, unsigned threads) : to_(to) {
  for (unsigned i = 0; i < threads; ++i) try {
      threads_.emplace_back([this] { serve(); });
    } catch (std::system_error const&) {
      if (threads_.empty()) throw;
      break;  // so few do
    }
  std::lock_guard const held(mutex_);
  most_busy_ = std::max<unsigned>(static_cast<unsigned>(threads_.size()) - 1, 1);
  arrived_.notify_all();
}

thread_pool::~thread_pool() {
  {
    std::lock_guard const held(mutex_);
    is_over_ = true;
  }
  arrived_.notify_all();
  for (auto& t : threads_) t.join();
}

void thread_pool::run(std::function<int()> work, std::function<void(int)> then) {
  add(jobs_, std::move(work), std::move(then));
}

void thread_pool::run_first(std::function<int()> work, std::function<void(int)> then) {
  add(first_, std::move(work), std::move(then));
}

void thread_pool::add(std::deque<job>& to, std::function<int()> work,
                      std::function<void(int)> then) {
  ++under_way_;
  auto counted = [this, then = std::move(then)](int result) {
    --under_way_;
    then(result);
  };
  {
    std::lock_guard const held(mutex_);
    to.push_back({std::move(work), std::move(counted)});
  }
  arrived_.notify_one();
}

void thread_pool::serve() {
  std::unique_lock held(mutex_);
  for (;;) {
    arrived_.wait(held, [&] {
      bool const is_end = is_over_ && first_.empty() && jobs_.empty();
      return is_end || !first_.empty() || may_take_next();
    });
    if (first_.empty() && jobs_.empty()) return;
    bool const is_first = !first_.empty();
    std::deque<job>& from = is_first ? first_ : jobs_;
    job mine = std::move(from.front());
    from.pop_front();
    if (!is_first) ++busy_;
    held.unlock();
    int const result = mine.work();
    to_.post([then = std::move(mine.then), result] { then(result); });
    held.lock();
    if (!is_first) --busy_;
    if (is_over_) arrived_.notify_all();
  }
}

}  // namespace sluice::journal
