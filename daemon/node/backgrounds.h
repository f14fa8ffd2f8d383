// SPDX-License-Identifier: Apache-2.0
// The jobs of this node whose class holds their background work back: a keeper for each target
// (background/keeper.h), with what the job may have now. Nobody is woken for a job that does no
// I/O.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "background/keeper.h"
#include "node/job_table.h"
#include "node/loop_time.h"
#include "node/pace.h"
#include "node/site_state.h"
#include "runtime/metric_table.h"
#include "verbs/views/overrides.h"

namespace sluice::node {

class backgrounds {
 public:
  backgrounds(job_table const& jobs, site_state const& site, verbs::override_book const& overrides,
              loop_time& time)
      : jobs_(jobs), site_(site), overrides_(overrides), time_(time) {}

  /// After a change of policy.
  void use();
  /// Any number of times a second.
  void look(std::int64_t now_ns);
  /// When a job that does I/O is to be looked at; never_ns: none does.
  std::int64_t due_ns() const { return due_ns_; }
  /// Null: nothing of it is held back.
  nlohmann::json rows(job const& j) const;
  /// Its limits of roles, to be shown beside its supplies.
  std::vector<background::keeper::part> parts(job const& j) const;
  void publish(runtime::metric_table& m);

 private:
  using seconds = std::array<double, policies::tail_sign_count>;
  struct entry {
    std::string qos_class;
    std::vector<background::keeper> keepers;
  };
  entry bind(job const& j) const;
  void look(job& j, entry& e, std::int64_t now_ns);
  void keep_sums(entry const& e);

  job_table const& jobs_;
  site_state const& site_;
  verbs::override_book const& overrides_;
  loop_time& time_;
  bool is_any_ = false;
  std::map<core::job_id, entry> of_job_;
  std::map<std::string, seconds> past_;  // of jobs that are gone, by class
  std::set<std::array<std::string, 3>> shown_;
  std::int64_t due_ns_ = never_ns;
};

}  // namespace sluice::node
