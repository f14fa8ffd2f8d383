// SPDX-License-Identifier: Apache-2.0
// What people changed while it runs: limits, classes, pauses of jobs on this node, each for a time
// or until it is changed back. Kept in state_dir/overrides.json. Times are of the real-time clock:
// they are promises to people and outlive the daemon.
// What stays true: the owner of a job can only take away from it what he may have, and cannot undo
// what an operator did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/rates.h"

namespace sluice::node {

struct override_item {
  rate limit = 0;            // of a limit
  std::string qos_class;     // of a class
  std::int64_t until_s = 0;  // Unix time; 0: for good
  bool by_operator = false;
};

/// All overrides of one job.
struct job_overrides {
  std::map<std::string, override_item> limits;  // by channel name
  std::optional<override_item> qos_class;
  std::optional<override_item> pause;
  bool is_empty() const { return limits.empty() && !qos_class && !pause; }
};

class override_book {
 public:
  using job_id = std::string;  // the job's folder

  /// Null: none.
  job_overrides const* find(job_id const& job) const;

  /// Throw a usage error when an operator's word stands against the owner's.
  void limit(job_id const& job, std::string const& channel, override_item const& item);
  void qos_class(job_id const& job, override_item const& item);
  void pause(job_id const& job, override_item const& item);
  /// False: it was not paused.
  bool resume(job_id const& job, bool by_operator);

  void forget(job_id const& job);
  /// Forgets all but these, which are sorted. True when there were others.
  bool keep_only(std::vector<job_id> const& jobs);
  /// True when something ran out.
  bool expire(std::int64_t now_s);

  std::string to_text() const;
  /// What can be read of it.
  static override_book from_text(std::string const& text);

 private:
  std::map<job_id, job_overrides> jobs_;
};

}  // namespace sluice::node
