// SPDX-License-Identifier: Apache-2.0
// The amount of each supply that this node may use by its lease, and the memory of that on disk. A
// node without a parent has one too: it owns the whole, and does without the memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lease/child.h"
#include "node/clock.h"
#include "node/site_state.h"
#include "runtime/config.h"
#include "runtime/lease_file.h"
#include "runtime/log.h"

namespace sluice::node {

class held_lease {
 public:
  /// Throws when a node with a parent cannot keep what it is given.
  held_lease(runtime::config const& config, std::uint64_t incarnation, runtime::logger& log);

  /// After a change of policy: what is this node's by itself.
  void set_own(site_state const& site);
  /// After a start. Returns the values held last, by supply; empty: nothing is known.
  std::vector<rate> recall(site_state const& site, moment at);
  /// To disk. What is acknowledged must be there first.
  void keep(site_state const& site);

  lease::child child;

 private:
  void open(std::string const& path);

  std::optional<runtime::lease_file> file_;  // none: it cannot be had
  bool has_parent_;
  bool is_kept_ = true;
  runtime::logger& log_;
};

}  // namespace sluice::node
