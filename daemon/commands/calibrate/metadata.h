// SPDX-License-Identifier: Apache-2.0
// Operations on names and attributes, measured alone: what a call needs is made before it and
// removed after it, and only the calls themselves are timed. fio has no such jobs.
// What stays true: everything happens below a directory of our own, by descriptors and plain names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace sluice::calibrate {

/// Names of ops.def, and `create`.
std::vector<std::string> const& metadata_ops();

/// The operations of one thread.
class metadata_work {
 public:
  /// Makes a directory of its own in `parent`; `called` is unique there. 0 or an errno is in
  /// error().
  metadata_work(std::string const& op, int parent, std::string const& called);
  ~metadata_work();
  metadata_work(metadata_work const&) = delete;
  metadata_work& operator=(metadata_work const&) = delete;

  int error() const { return error_; }

  struct turn {
    unsigned calls = 0;
    std::int64_t took_ns = 0;  // of them all
    int error = 0;             // errno of the first that failed
  };
  /// A batch of calls.
  turn run();

  struct slot;

 private:
  struct row;
  static row const rows[];
  friend std::vector<std::string> const& metadata_ops();

  row const* what_ = nullptr;
  descriptor dir_;
  std::vector<slot> slots_;
  int error_ = 0;
};

}  // namespace sluice::calibrate
