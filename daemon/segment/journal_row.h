// SPDX-License-Identifier: Apache-2.0
// How a journal fares, as one row for people and programs: of `sluice order`, and of the daemon of
// a node, which knows the journals of its users.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "segment/order_look.h"

namespace sluice::segment {

nlohmann::ordered_json journal_row(journal_status const& log);

/// Seconds since then; 0: never.
double age_s(std::uint64_t since_ns);

}  // namespace sluice::segment
