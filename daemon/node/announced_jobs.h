// SPDX-License-Identifier: Apache-2.0
// The jobs of the batch scheduler: takes those that it announces, and releases those that it no
// longer announces.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "node/job_table.h"

namespace sluice::node {

class announced_jobs {
 public:
  announced_jobs(job_table& jobs, site_state const& site, runtime::logger& log)
      : jobs_(jobs), site_(site), log_(log) {}

  struct changes {
    std::vector<job*> made, withdrawn;
  };
  /// Looks at all announcements. Who is withdrawn is still to be released.
  changes look();
  /// Null: there is no such announcement, or it cannot be (the log says why).
  job* take(std::string const& name);

 private:
  job_table& jobs_;
  site_state const& site_;
  runtime::logger& log_;
  std::set<std::string> unreadable_;  // announcements that were told of
};

}  // namespace sluice::node
