// SPDX-License-Identifier: Apache-2.0
// The figures of a controller for the log, Prometheus and its history. Series of a class that is
// gone are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/arbiter.h"
#include "runtime/services.h"
#include "verbs/views/views.h"
#include "wire/socket.h"

namespace sluice::cluster {

/// None: its capacity is written, or steered elsewhere.
std::optional<verbs::steered_view> steered_view_of(arbiter const& b, std::uint32_t supply);

/// None: nothing was measured, or somebody else looks.
std::optional<verbs::drift_view> drift_view_of(arbiter const& b, std::uint32_t supply);

class figures {
 public:
  explicit figures(runtime::services& services) : services_(services) {}

  void tell(std::vector<notice> const& notices);

  /// A supply of an earlier policy is forgotten: nothing is shown of it any more.
  void forget(supply_row const& supply, std::vector<class_row> const& classes);

  /// What the arbiter does not know of itself.
  struct standing {
    std::int64_t settle_ns = 0;  // what the last allocation took
    std::int64_t policy_loaded_s = 0;
    std::optional<bool> is_parent_heard;  // none: it has no parent
    wire::peer_counts refused;
    std::string listens_at;
  };
  /// Once a second.
  void publish(arbiter const& b, standing const& at, time_ns now);

  /// Each allocation; told to the history not more often than four times a second, for there may be
  /// ten thousand jobs.
  void remember(arbiter const& b, time_ns now);

 private:
  void publish_supplies(arbiter const& b, double passed_s);

  runtime::services& services_;
  time_ns published_at_ = 0, remembered_at_ = 0;
  std::vector<std::string> classes_shown_;
};

}  // namespace sluice::cluster
