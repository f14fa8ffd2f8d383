// SPDX-License-Identifier: Apache-2.0
// Figures are as old as the loop's last look, and a loop without work does not look. So a reader in
// another thread asks for a look, and waits for it a moment.
// What stays true: however many read, the loop is woken at most ten times a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/descriptor.h"

namespace sluice::runtime {

class fresh_look {
 public:
  static constexpr std::int64_t fresh_ns = 100'000'000;

  // ---- the loop ----
  /// Until then nobody is asked: a role that looks by itself opens nothing.
  void open();
  /// To poll; -1: not open.
  int fd() const { return bell_.get(); }
  /// A look was taken now: whoever waits reads it.
  void taken(std::int64_t now_ns);
  /// Nobody waits any more.
  void close();

  // ---- any thread ----
  /// Returns when the figures are fresh, or after the patience: then they are what they are.
  void ask(std::chrono::milliseconds patience = std::chrono::milliseconds(2000));

 private:
  std::mutex lock_;  // of all below
  std::condition_variable taken_;
  descriptor bell_;
  bool is_open_ = false;
  std::int64_t looked_ns_ = 0;
};

}  // namespace sluice::runtime
