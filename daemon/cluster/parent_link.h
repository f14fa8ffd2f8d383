// SPDX-License-Identifier: Apache-2.0
// A relay and its parent: the conversation (runtime/uplink.h), what the lease says (relay_side.h),
// and the memory of it on disk.
// What stays true: before a report leaves, the lease file holds what it acknowledges.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/relay_side.h"
#include "runtime/lease_file.h"
#include "runtime/services.h"
#include "runtime/uplink.h"

namespace sluice::cluster {

class parent_link {
 public:
  parent_link(runtime::config const& config, runtime::services& services, arbiter& below);

  /// Takes in what came; grants and welcomes are done with. The rest is the caller's.
  runtime::uplink::news hear(time_ns now);
  /// Before the arbiter settles, and after it.
  void serve(time_ns now) { side_.serve(now); }
  void talk(time_ns now, bool demand_turned);
  void look_after(time_ns now);
  void plan_changed() { side_.plan_changed(); }
  /// With these keys, unless they say the same as `old`.
  void renew(wire::security const* old, wire::security const& fresh);

  bool is_welcome() const { return up_.is_welcome(); }
  bool is_heard(time_ns now) const { return up_.is_welcome() && !side_.is_silent(now); }
  bool send(wire::question const& q) { return up_.send(q); }
  bool send_gate(wire::message const& m) { return up_.send_gate(m); }
  std::string address() const { return up_.address(); }
  std::string const& name() const { return up_.parent_name(); }
  time_ns due() const { return side_.due(); }
  void* zmq_handle() { return up_.socket().zmq_handle(); }
  void* monitor_handle() { return up_.socket().monitor_handle(); }

 private:
  void recall_lease(time_ns now);
  void keep_lease();
  void announce_jobs(time_ns now);
  std::vector<std::uint32_t> supply_keys() const;

  runtime::config const& config_;
  runtime::services& services_;
  arbiter& below_;
  relay_side side_;
  runtime::uplink up_;
  std::unique_ptr<runtime::lease_file> memory_;
  bool is_kept_ = true;
  time_ns announced_at_ = 0, heard_at_ = 0;
};

}  // namespace sluice::cluster
