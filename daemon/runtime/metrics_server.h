// SPDX-License-Identifier: Apache-2.0
// /metrics (text format 0.0.4), /health and the dashboard over HTTP, in threads of their own that
// see the published table, the history and nothing else of the daemon.
#pragma once

#include <memory>
#include <string>

#include "base/owners.h"
#include "runtime/metric_table.h"

namespace sluice::runtime {

class dashboard;
class fresh_look;

class metrics_server {
 public:
  /// `address`: HOST:PORT, port 0 for any. A port that somebody else has, who may be any user of
  /// this machine, is tried again every ten seconds. Throws sluice_error when HOST is none of this
  /// machine. The table, the dashboard and the looks (may be null) outlive the server, and so does
  /// what `owner_of` needs, which several threads ask.
  static std::unique_ptr<metrics_server> open(std::string const& address, metric_table const& table,
                                              dashboard const* board = nullptr,
                                              fresh_look* looks = nullptr,
                                              owner_lookup owner_of = {});
  virtual ~metrics_server() = default;             // ends the threads
  virtual std::string const& address() const = 0;  // as bound, or to be bound
  virtual bool is_waiting() const = 0;             // somebody else has the port
};

/// CPU, memory, descriptors of this process, under the names that all exporters use.
std::string process_metrics();

}  // namespace sluice::runtime
