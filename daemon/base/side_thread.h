// SPDX-License-Identifier: Apache-2.0
// One piece of work at a time in a thread of its own, so that a loop never waits for a disk.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/descriptor.h"

namespace sluice {

class side_thread {
 public:
  /// Throws sluice::error.
  side_thread();
  /// Waits for the work in hand.
  ~side_thread();
  side_thread(side_thread const&) = delete;
  side_thread& operator=(side_thread const&) = delete;

  /// To be polled: it can be read when the work is over, until end().
  int fd() const { return bell_.get(); }
  /// The work before is over and was ended. `work` must not throw. False: there is no thread to be
  /// had.
  bool begin(std::function<void()> work);
  /// Something was begun and not ended.
  bool is_busy() const { return thread_.joinable(); }
  bool is_over() const { return is_busy() && is_over_; }
  /// Waits where it is not over. What the work wrote can be read from then on.
  void end();

 private:
  descriptor bell_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace sluice
