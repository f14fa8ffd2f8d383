// SPDX-License-Identifier: Apache-2.0
// The jobs of this node whose class promises them requests: counts what they do, and turns the
// promise into the VOPs that it takes now (policies/request_profile.h). stream::need is the result,
// which claim_of() and the report to the parent use.
// What stays true: a job's counters can raise its need no further than its class may reserve, and
// never what a job of another class was promised.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "node/job_table.h"
#include "node/loop_time.h"
#include "node/site_state.h"
#include "policies/request_profile.h"
#include "policy/requests.h"
#include "runtime/metric_table.h"
#include "verbs/views/overrides.h"

namespace sluice::node {

class profiles {
 public:
  /// `has_parent`: somebody above says what all nodes together may promise.
  profiles(job_table const& jobs, site_state const& site, verbs::override_book const& overrides,
           loop_time& time, bool has_parent)
      : jobs_(jobs), site_(site), overrides_(overrides), time_(time), has_parent_(has_parent) {}

  /// After a change of policy: all is learned anew.
  void use();
  /// At the end of each cycle, when the streams have been measured.
  void look(std::int64_t now_ns);
  /// Null: the job is promised no requests.
  nlohmann::json rows(job const& j) const;
  /// The same for people.
  std::vector<std::string> sentences(job const& j) const;
  void publish(runtime::metric_table& m);

 private:
  struct counted {  // one kind of request
    unsigned own = 0, bytes = 0;
    std::vector<unsigned> caused;
    std::uint64_t size_bytes = 0;                 // 0: each call is a request
    policies::request_look before;                // sums
    double shown_requests = 0, shown_span_s = 0;  // of the last seconds
    double per_s() const { return shown_span_s > 0 ? shown_requests / shown_span_s : 0; }
  };
  struct followed {  // a supply
    policy::request_terms terms;
    policies::request_profile profile;
    std::vector<counted> kinds;
    rate need = 0;
  };
  struct entry {
    std::string qos_class;
    std::int64_t looked_ns = 0;
    std::vector<followed> supplies;
    followed const* find(std::string const& supply) const;
  };
  using sums = std::map<std::array<std::string, 3>, policies::request_look>;

  static policies::request_look sums_of(job const& j, counted const& k);
  entry bind(job const& j, std::int64_t now_ns) const;
  void look(job& j, entry& e, std::int64_t now_ns);
  void set_needs(supply_slot const& slot);
  std::optional<policies::claim> claim_on(job const& j, std::string const& supply) const;

  job_table const& jobs_;
  site_state const& site_;
  verbs::override_book const& overrides_;
  loop_time& time_;
  bool has_parent_;
  bool is_any_ = false;
  std::map<core::job_id, entry> of_job_;
  sums done_;  // by class, target and request
  std::set<std::array<std::string, 2>> shown_;
};

}  // namespace sluice::node
