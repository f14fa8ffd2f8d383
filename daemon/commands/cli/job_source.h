// SPDX-License-Identifier: Apache-2.0
// The sources of `sluice top`: a daemon, and the segments of this user's jobs that run without one.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "commands/cli/daemon.h"
#include "commands/cli/role_rows.h"

namespace sluice::cli {

/// The names that jobs of an answer may have as folders.
std::set<std::string> folders_of(nlohmann::json const& jobs);

class job_source {
 public:
  /// `own_run_dir` may be empty: there is none.
  job_source(std::optional<daemon_at> daemon, std::string own_run_dir)
      : daemon_(std::move(daemon)), own_run_dir_(std::move(own_run_dir)) {}
  /// Throws with advice when there is nothing to look at.
  static job_source find(global_options const& global);

  std::optional<daemon_at> const& daemon() const { return daemon_; }
  std::string const& own_run_dir() const { return own_run_dir_; }

  /// An answer to `top`, all pages; own jobs say {"own": true}. Throws what the daemon throws.
  nlohmann::json look(int timeout_ms);

  /// `cluster ctl`, `no daemon`.
  std::string words() const;
  /// The command as it would be started for a job: options before the verb.
  std::vector<std::string> options_for(bool is_own) const;

 private:
  struct counts {
    std::uint64_t amount = 0, waited_ns = 0;
    std::int64_t at_ns = 0;
  };

  void add_roles(nlohmann::json& job, std::string const& run_dir);
  void add_own_jobs(nlohmann::json& jobs);
  nlohmann::json own_job(std::string const& name, std::map<std::string, counts>& now);

  std::optional<daemon_at> daemon_;
  std::string own_run_dir_;
  std::map<std::string, counts> before_;  // at the last look, by job and channel
  role_rows roles_;
};

}  // namespace sluice::cli
