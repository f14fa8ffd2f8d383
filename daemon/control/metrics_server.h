// SPDX-License-Identifier: Apache-2.0
// /metrics (text format 0.0.4), /health and the dashboard over HTTP, in threads of their own that
// see the published table, the history and nothing else of the daemon.
#pragma once

#include <memory>
#include <string>

#include "control/metric_table.h"

namespace sluice::control {

class dashboard;

class metrics_server {
 public:
  /// `address`: HOST:PORT, port 0 for any. Throws sluice_error when it cannot be bound. The table
  /// and the dashboard (may be null) outlive the server.
  static std::unique_ptr<metrics_server> open(std::string const& address, metric_table const& table,
                                              dashboard const* board = nullptr);
  virtual ~metrics_server() = default;             // ends the threads
  virtual std::string const& address() const = 0;  // as bound
};

/// CPU, memory, descriptors of this process, under the names that all exporters use.
std::string process_metrics();

}  // namespace sluice::control
