// SPDX-License-Identifier: Apache-2.0
// When to look into the folders of the run directory: RUN/scheduler, where jobs are announced, and
// RUN/jobs, where programs that began without a daemon leave their jobs.
#pragma once

#include <cstdint>
#include <string>

#include "node/pace.h"
#include "node/run_watch.h"

namespace sluice::node {

class run_folders {
 public:
  explicit run_folders(std::string run_dir);

  /// To poll; -1: the kernel tells nothing, look from time to time.
  int fd() const { return events_.fd(); }
  void listen(std::int64_t now_ns);

  bool is_heed_due(std::int64_t now_ns) const;
  void heeded(std::int64_t now_ns);
  /// `wanted_ns`: when there is reason beside what the kernel tells.
  std::int64_t heed_ns(std::int64_t wanted_ns) const;

  bool is_sweep_due(std::int64_t now_ns) const;
  void swept(std::int64_t now_ns);
  std::int64_t sweep_ns() const;

 private:
  std::string run_dir_;
  run_watch events_;
  std::int64_t heeded_ns_ = 0, told_ns_ = never_ns, swept_ns_ = 0;
  bool has_left_ = true;  // somebody left a folder in RUN/jobs, as far as is known
};

}  // namespace sluice::node
