// SPDX-License-Identifier: Apache-2.0
// Replaces one file durably in a thread of its own, so that a loop never waits for its disk. One
// text at a time.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/descriptor.h"

namespace sluice {

class file_writer {
 public:
  /// Throws sluice::error.
  explicit file_writer(std::string path);
  /// Waits for the write in hand.
  ~file_writer();
  file_writer(file_writer const&) = delete;
  file_writer& operator=(file_writer const&) = delete;

  /// To be polled; then take() says what came of the write.
  int fd() const { return bell_.get(); }
  /// The one before is over. False: there is no thread to be had.
  bool begin(std::string text);
  bool is_busy() const { return thread_.joinable(); }
  /// Whether it is written; none: it is not over.
  std::optional<bool> take();
  /// The same, and waits for it.
  bool wait();

 private:
  std::string const path_;
  descriptor bell_;
  std::atomic<bool> is_over_ = false;
  bool is_written_ = false;  // the thread's until it is over
  std::thread thread_;
};

}  // namespace sluice
