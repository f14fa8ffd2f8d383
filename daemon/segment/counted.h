// SPDX-License-Identifier: Apache-2.0
// The counters of a job in the form of the result file (daemon/commands/report/README.md): calls,
// channels, unlimited calls. The only writer of that part, for the command line and for the daemon.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "segment/segment_file.h"

namespace sluice::segment {

core::histogram_counts waits_of(foreign<abi::segment> const& s, unsigned channel);

/// The rate of a channel now, in units/ns with 40 fractional bits.
std::uint64_t rate_of(foreign<abi::segment> const& s, unsigned channel);

/// The ruleset, read once and checked: whoever owns the file can write in it at any time. Throws
/// when it is none.
std::unique_ptr<core::ruleset> rules_of(foreign<abi::segment> const& s);

/// {"processes", "channels", "calls", "passthrough"}; without channels when the ruleset is none.
/// `running`: how many processes are alive, which the caller knows.
nlohmann::ordered_json counted_json(foreign<abi::segment> const& s, std::size_t running);

}  // namespace sluice::segment
