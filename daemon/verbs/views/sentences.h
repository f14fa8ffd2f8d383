// SPDX-License-Identifier: Apache-2.0
// The sentences of `sluice explain --job`.
#pragma once

#include <string>
#include <vector>

#include "verbs/views/overrides.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

std::vector<std::string> explain(job_view const& job, job_details const& details,
                                 job_overrides const* changed, double now_s);

}  // namespace sluice::verbs
