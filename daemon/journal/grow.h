// SPDX-License-Identifier: Apache-2.0
// Problem: a large journal must be written once before it is used, and no program should wait for
// that at its start. Idea: it begins small. When a third of it is full before its time, a thread
// prepares the rest of the file after the ring, and the ring takes it in when everything in use
// lies where it would lie in the larger ring: in the first lap of several.
// What stays true: the prepared part is durable before a superblock names it; a disk without room
// leaves the journal as it is.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "journal/writer.h"

namespace sluice::journal {

class log_growth {
 public:
  /// `is_awaited`: somebody waits for the journal, and its disk.
  log_growth(disk& d, writer& log, std::function<bool()> is_awaited)
      : disk_(d), log_(log), is_awaited_(std::move(is_awaited)) {}
  ~log_growth();
  log_growth(log_growth const&) = delete;
  log_growth& operator=(log_growth const&) = delete;

  /// So large may the journal's file become; 0: it stays as it is.
  void up_to(std::uint64_t log_bytes_max) { bytes_max_ = log_bytes_max; }
  /// From the loop: the journal is too small for what is written. The first time it begins.
  void want();

 private:
  void run(std::uint64_t ring_bytes, std::uint64_t ring_bytes_wanted);
  bool rest(std::uint64_t ns);

  disk& disk_;
  writer& log_;
  std::function<bool()> const is_awaited_;
  std::uint64_t bytes_max_ = 0;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace sluice::journal
