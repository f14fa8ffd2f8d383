// SPDX-License-Identifier: Apache-2.0
#include "journal/commits.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace sluice::journal {

commits::commits(writer& log, mailbox& to, late_looks& looks)
    : log_(log), to_(to), looks_(looks), thread_([this] { serve(); }) {}

commits::~commits() {
  {
    std::lock_guard const held(mutex_);
    is_over_ = true;
  }
  arrived_.notify_all();
  thread_.join();
}

void commits::push(std::uint64_t lsn, std::function<void(int)> then) {
  awaited a;
  a.lsn = lsn;
  a.then = std::move(then);
  push(std::move(a));
}

void commits::push(awaited a) {
  std::lock_guard const held(mutex_);
  queue_.push_back(std::move(a));
  if (queue_.size() >= enough_) arrived_.notify_one();
}

bool commits::is_idle() const {
  std::lock_guard const held(mutex_);
  return queue_.empty() && !is_busy_;
}

std::uint64_t commits::batch_ns() const {
  std::lock_guard const held(mutex_);
  return gathering_.batch_ns();
}

void commits::gather(lock& held) {
  std::size_t const before = queue_.size();
  std::uint64_t const patience_ns = gathering_.patience_ns(before);
  if (patience_ns == 0 || is_over_) return;
  std::uint64_t const begin = steady_count_ns();
  enough_ = gathering_.expected();
  arrived_.wait_for(held, std::chrono::nanoseconds(patience_ns),
                    [&] { return is_over_ || queue_.size() >= enough_; });
  enough_ = 1;
  gathering_.waited(before, queue_.size(), steady_count_ns() - begin);
}

void commits::serve() {
  prctl(PR_SET_TIMERSLACK, 1);  // patience is shorter than the usual slack
  lock held(mutex_);
  std::vector<awaited> now;
  for (;;) {
    arrived_.wait(held, [&] { return is_over_ || !queue_.empty(); });
    if (queue_.empty()) return;
    is_busy_ = true;
    gather(held);
    now.swap(queue_);
    held.unlock();
    std::uint64_t lsn = 0;
    for (auto const& a : now) lsn = std::max(lsn, a.lsn);
    std::uint64_t const begin = steady_count_ns();
    int const failed = log_.commit(lsn);
    std::uint64_t const took = steady_count_ns() - begin;
    held.lock();
    std::size_t const queued = queue_.size();
    held.unlock();
    for (auto& a : now) finish(a, failed);
    held.lock();
    gathering_.written(now.size(), queued, took);
    now.clear();
    is_busy_ = false;
  }
}

void commits::finish(awaited& a, int failed) {
  if (a.asked.from != nullptr) {
    bool is_good = failed == 0;
    for (auto const& p : a.places)
      is_good = is_good && (p.in->flags(p.key) & abi::order_unlogged) == 0;
    if (is_good && a.look && looks_.has_found(*a.look)) return to_.post(std::move(a.anew));
    a.asked.from->answer(a.asked, is_good ? 0 : abi::go_native);
  }
  if (a.then) to_.post([then = std::move(a.then), failed] { then(failed); });
}

}  // namespace sluice::journal
