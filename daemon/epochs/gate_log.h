// SPDX-License-Identifier: Apache-2.0
// The book of epochs on a disk: PATH has all of it, and PATH-N the lines of what has changed since,
// for to write a large book takes a second. Now and then a thread folds the lines into the file.
// What stays true: PATH names the first log that follows it. Logs are complete but for the last
// line of the last one. What keep() has said stays, wherever its process is killed.
#pragma once

#include <cstdint>
#include <future>
#include <string>

#include "base/descriptor.h"
#include "epochs/gate_book.h"

namespace sluice::epochs {

class gate_log {
 public:
  gate_log(std::string path, bool is_relay) : path_(std::move(path)), is_relay_(is_relay) {}

  /// Reads what there is into the book. Throws sluice_error when it is no book: then the book is as
  /// it was.
  void recall(gate_book& book);
  /// All that is dirty is durable when this returns. False: it is not, and is to be tried again.
  bool keep(gate_book const& book);

  /// For tests: so many bytes of lines are folded.
  static constexpr std::size_t least_fold_bytes = 1 << 20;
  void fold_from(std::size_t bytes) { least_bytes_ = bytes; }
  /// Waits for the thread.
  void finish_fold();

 private:
  std::string log_path(std::uint64_t number) const;
  bool begin_anew(gate_book const& book);
  bool open_log(std::uint64_t number);
  void begin_fold();

  std::string path_;
  bool is_relay_;
  descriptor log_;                               // none: all is written next
  std::uint64_t first_ = 1, number_ = 0;         // of the logs after the file; the last of all
  std::size_t log_bytes_ = 0, whole_bytes_ = 0;  // of lines that are not being folded; of the file
  std::size_t least_bytes_ = least_fold_bytes;
  std::future<std::size_t> fold_;  // bytes of the new file, or 0
};

}  // namespace sluice::epochs
