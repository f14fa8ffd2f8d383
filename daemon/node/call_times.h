// SPDX-License-Identifier: Apache-2.0
// How long calls of jobs take and wait, by class, for the metrics. Once a second each job's memory
// is read, and the growth is added.
// What stays true: the sums only grow; a target that the policy does not name has no row of its
// own, so users make no rows; growth beyond what a node can do is left out.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "abi/segment.h"
#include "base/foreign.h"
#include "policy/site.h"
#include "runtime/metric_table.h"

namespace sluice::node {

/// What was seen of a job at the last look.
struct told_times {
  bool is_named = false;
  std::vector<std::string> target;                  // by number; what the metrics call it
  std::map<unsigned, runtime::distribution> calls;  // by target and op
  std::map<unsigned, runtime::distribution> waits;  // by channel
};

/// Targets of a job by number: names of the policy, or `call_times::elsewhere`.
std::vector<std::string> target_names(foreign<abi::segment> const& s, policy::site const& site);

class call_times {
 public:
  static constexpr std::int64_t look_ns = 1'000'000'000;
  static constexpr char elsewhere[] = "elsewhere";

  bool is_due(std::int64_t now_ns) const { return now_ns - looked_ns_ >= look_ns; }
  void begin(std::int64_t now_ns) { looked_ns_ = now_ns; }
  void look_at_calls(foreign<abi::segment> const& s, told_times& told, policy::site const& site,
                     std::string_view qos_class);
  void look_at_waits(foreign<abi::segment> const& s, unsigned channel, told_times& told,
                     std::string_view qos_class);
  void publish(runtime::metric_table& m) const;

 private:
  std::int64_t looked_ns_ = 0;
  std::map<std::array<std::string, 3>, runtime::distribution> calls_;  // class, op, target
  std::map<std::string, runtime::distribution> waits_;                 // class
};

}  // namespace sluice::node
