// SPDX-License-Identifier: Apache-2.0
// What a job was counted, as the result file says it (daemon/report/README.md): calls, channels,
// what passed unlimited. The only writer of that part, for the command line and for the daemon.
#pragma once

#include <nlohmann/json.hpp>

#include "segment/segment_file.h"

namespace sluice::segment {

core::histogram_counts waits_of(abi::segment const& s, unsigned channel);

/// The rate of a channel now, in units/ns with 40 fractional bits.
std::uint64_t rate_of(abi::segment const& s, unsigned channel);

/// {"processes", "channels", "calls", "passthrough"}
nlohmann::ordered_json counted_json(abi::segment const& s);

}  // namespace sluice::segment
