// SPDX-License-Identifier: Apache-2.0
// The result of a run, from the counters of a segment: as JSON (format version 1) and as a table
// for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "base/foreign_file.h"
#include "commands/cli/supervise.h"
#include "segment/counted.h"

namespace sluice::cli {

using json = nlohmann::ordered_json;
using segment::rate_of;
using segment::waits_of;

struct run_facts {
  std::vector<std::string> command;
  std::optional<ending> end;
  double elapsed_s = 0;
  std::int64_t owner = any_owner;  // whose processes the job has
  std::string segment_path = {};
};

json report_json(foreign<abi::segment> const& s, run_facts const& facts);

/// What became of fsync on durable targets, by name. Null when the job had none.
json order_json(std::string const& segment_path);
/// The same of its epochs; null where it has none.
json after_json(std::string const& segment_path);

/// What its requests were for: "roles", where its policy has some.
void put_roles(json& report, std::string const& segment_path, std::int64_t owner);

/// Who the bytes and the waits were for, and how that is known; some lines, each ended, or none.
std::string roles_table(json const& report);

/// Some lines, each ended: channels, the busiest calls, what was not limited.
std::string report_table(json const& report);

/// A rate in a unit of channels, for people: `5000 VOP/s`, `200 MiB/s`, `1000/s`.
std::string measured_rate(double per_s, std::string const& unit);

/// A channel that limits nothing, and counts what a class promises an application: only in JSON.
bool is_internal(json const& channel);

/// JSON as text, whatever bytes its strings hold.
std::string dump(json const& value);

}  // namespace sluice::cli
