// SPDX-License-Identifier: Apache-2.0
// The figures of a trace: per operation and job the total, mean, 99th percentile and peak.
#pragma once

#include <string>

#include "commands/trace/trace.h"

namespace sluice::trace {

enum class spark { none, ascii, unicode };

std::string info_table(trace const& t, std::string const& name, spark sparks);
std::string info_json(trace const& t, std::string const& name);

}  // namespace sluice::trace
