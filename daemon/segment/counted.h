// SPDX-License-Identifier: Apache-2.0
// The counters of a job in the form of the result file (daemon/commands/report/README.md): calls,
// channels, unlimited calls. The only writer of that part, for the command line and for the daemon.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "abi/segment.h"
#include "base/foreign.h"
#include "policy/compile.h"

namespace sluice::segment {

core::histogram_counts waits_of(foreign<abi::segment> const& s, unsigned channel);

/// The rate of a channel now, in units/ns with 40 fractional bits.
std::uint64_t rate_of(foreign<abi::segment> const& s, unsigned channel);
std::uint64_t rate_of(foreign<abi::segment> const& s, unsigned channel, std::int64_t now_ns);

/// {"processes", "channels", "calls", "passthrough"}, and what came of small I/O; without channels
/// when the ruleset is none. `running`: how many processes are alive, which the caller knows, as
/// he knows the targets of small I/O (small_look.h).
nlohmann::ordered_json counted_json(foreign<abi::segment> const& s, std::size_t running,
                                    policy::small_targets const& targets);

}  // namespace sluice::segment
