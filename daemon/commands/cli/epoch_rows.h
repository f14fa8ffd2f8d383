// SPDX-License-Identifier: Apache-2.0
// The part of `sluice order` about cluster epochs, as JSON and as lines for people: how many gates
// of a job on this node opened or stayed shut, why, and which programs wait for which nodes.
#pragma once

#include <string>

#include "commands/cli/epoch_look.h"
#include "commands/cli/order_rows.h"

namespace sluice::cli {

order_row gate_row(std::string const& job, job_look const& look);

/// The rows of all jobs as lines.
std::string gate_table(order_row const& rows);

}  // namespace sluice::cli
