// SPDX-License-Identifier: Apache-2.0
// Starts threads for the loop that have other capabilities than the loop. A thread inherits those
// of its creator. So a thread with the wanted capabilities makes the launcher, which keeps them.
#pragma once

#include <functional>
#include <memory>

namespace sluice::runtime {

class launcher {
 public:
  launcher();
  /// Threads that it started are left to themselves.
  ~launcher();
  launcher(launcher const&) = delete;
  launcher& operator=(launcher const&) = delete;

  /// Runs `task` in a thread of its own, soon. False: there is no thread to be had.
  bool start(std::function<void()> task);

 private:
  struct desk;
  std::shared_ptr<desk> desk_;
};

}  // namespace sluice::runtime
