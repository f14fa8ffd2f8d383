// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher.h"

#include <sys/prctl.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/leave_descriptors.h"

namespace sluice::runtime {

/// What the loop asks and the launching thread answers.
struct launcher::desk {
  std::mutex lock;
  std::condition_variable changed;
  std::function<void()> task;   // empty: none
  std::optional<bool> started;  // the answer to the last one
  bool is_over = false;

  void serve() {
    prctl(PR_SET_NAME, "sluiced-launch");
    std::unique_lock hold(lock);
    while (true) {
      changed.wait(hold, [&] { return is_over || task; });
      if (is_over) return;
      started = launch(std::exchange(task, nullptr));
      changed.notify_all();
    }
  }
  static bool launch(std::function<void()> task) {
    try {
      std::thread([task = std::move(task)] {
        prctl(PR_SET_NAME, "sluiced-walk");
        leave_descriptors();
        task();
      }).detach();
      return true;
    } catch (std::system_error const&) {
      return false;
    }
  }
};

launcher::launcher() : desk_(std::make_shared<desk>()) {
  std::thread([at = desk_] { at->serve(); }).detach();
}

launcher::~launcher() {
  std::lock_guard const hold(desk_->lock);
  desk_->is_over = true;
  desk_->changed.notify_all();
}

bool launcher::start(std::function<void()> task) {
  std::unique_lock hold(desk_->lock);
  desk_->started.reset();
  desk_->task = std::move(task);
  desk_->changed.notify_all();
  desk_->changed.wait(hold, [&] { return desk_->started.has_value(); });
  return *desk_->started;
}

}  // namespace sluice::runtime
