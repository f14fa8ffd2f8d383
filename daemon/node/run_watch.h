// SPDX-License-Identifier: Apache-2.0
// Reports when an entry appears in RUN/jobs or RUN/scheduler or leaves it, so that a daemon without
// jobs need not look. The folders are the truth: a report only says that a look is worth it.
#pragma once

#include <string>

#include "base/descriptor.h"

namespace sluice::node {

class run_watch {
 public:
  explicit run_watch(std::string const& run_dir);

  /// To poll; -1: the kernel gives us none, look from time to time.
  int fd() const { return events_.get(); }
  /// True: something has changed since the last call. Follows folders that were made since.
  bool has_changed();

 private:
  void follow();

  std::string run_dir_;
  descriptor events_;
};

}  // namespace sluice::node
