// SPDX-License-Identifier: Apache-2.0
// A steered capacity, and costs that no longer fit, in the metrics of the daemon that looks. And
// how a supply leaves them.
#pragma once

#include <string_view>

#include "core/unit_kind.h"
#include "runtime/metric_table.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

void publish_steered(runtime::metric_table& m, std::string_view resource, std::string_view target,
                     core::unit_kind unit, steered_view const& v);

void publish_drift(runtime::metric_table& m, std::string_view target, drift_view const& v);

/// It is steered no more.
void remove_steered(runtime::metric_table& m, std::string_view resource, std::string_view target,
                    core::unit_kind unit);

/// It is no more: its counters go as well.
void remove_supply(runtime::metric_table& m, std::string_view resource, std::string_view target,
                   core::unit_kind unit);

}  // namespace sluice::verbs
