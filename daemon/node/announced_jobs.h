// SPDX-License-Identifier: Apache-2.0
// The jobs of the batch scheduler: takes those that it announces, and releases those that it no
// longer announces. One that finds no room is made when there is some, and its note says so.
#pragma once

#include <cstdint>
#include <map>
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
  /// Why an announced job waits for room; empty: it does not.
  std::string why_waiting(std::string const& name) const;

 private:
  struct waiting {
    std::int64_t since_ns = 0;
    std::uint64_t tried_at = 0;  // changes of room, when it was tried last
    std::string why;
  };

  bool is_due(std::string const& name) const;
  std::string late_note(std::string const& name) const;
  void wait_for_room(std::string const& name, std::string const& why);

  job_table& jobs_;
  site_state const& site_;
  runtime::logger& log_;
  std::set<std::string> unreadable_;        // announcements that were told of
  std::map<std::string, waiting> waiting_;  // those that found no room
};

}  // namespace sluice::node
