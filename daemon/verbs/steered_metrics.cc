// SPDX-License-Identifier: Apache-2.0
#include "verbs/steered_metrics.h"

namespace sluice::verbs {

using runtime::in_unit;
using runtime::metric;

void publish_steered(runtime::metric_table& m, std::string_view resource, std::string_view target,
                     core::unit_kind unit, steered_view const& v) {
  m.set(in_unit(metric::steered_operations_per_second, unit), {resource, target},
        static_cast<double>(v.found) / 1000);
  m.set(metric::slow_calls_ratio, {resource, target}, v.slow_ppm / 1e6);
  m.set(metric::slow_calls_allowed_ratio, {resource, target}, v.may_be_ppm / 1e6);
}

void publish_drift(runtime::metric_table& m, std::string_view target, drift_view const& v) {
  if (v.given == 0) return;
  m.set(metric::given_vops_per_second, {target}, static_cast<double>(v.given) / 1000);
  m.set(metric::costs_fit, {target}, v.sign == "fits" ? 1 : 0);
}

void remove_steered(runtime::metric_table& m, std::string_view resource, std::string_view target,
                    core::unit_kind unit) {
  m.remove(in_unit(metric::steered_operations_per_second, unit), {resource, target});
  m.remove(metric::slow_calls_ratio, {resource, target});
  m.remove(metric::slow_calls_allowed_ratio, {resource, target});
}

void remove_supply(runtime::metric_table& m, std::string_view resource, std::string_view target,
                   core::unit_kind unit) {
  for (metric const family :
       {metric::capacity_operations_per_second, metric::granted_operations_per_second,
        metric::demand_operations_per_second, metric::served_operations_total,
        metric::unheld_operations_total, metric::waiting_operations})
    m.remove(in_unit(family, unit), {resource, target});
  m.remove(metric::delayed_requests_total, {resource, target});
  remove_steered(m, resource, target, unit);
  if (unit != core::unit_kind::vops) return;
  m.remove(metric::given_vops_per_second, {target});
  m.remove(metric::costs_fit, {target});
}

}  // namespace sluice::verbs
