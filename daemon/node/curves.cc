// SPDX-License-Identifier: Apache-2.0
#include "node/curves.h"

#include <algorithm>

#include "core/token_bucket.h"

namespace sluice::node {

namespace {

phases lower_of(phases const& a, phases const& b) {
  return {std::min(a.now, b.now), std::min(a.after, b.after), std::min(a.own, b.own)};
}

void write_phases(curve_change const& c, phases const& p, phase_times const& t,
                  std::int64_t now_ns) {
  core::curve_settings s = settings_of(c.unit, p, t);
  if (c.is_paused) s.after_lease = 0;
  c.write(c.channel, s, now_ns);
  *c.in_force = p;
}

}  // namespace

core::curve_settings settings_of(unit_kind unit, phases const& p, phase_times const& t) {
  core::curve_settings s = core::default_settings(q40_of(unit, p.now), core::token_units(unit));
  s.cap_units = std::max(core::units_in(s.rate_q40, burst_ns), core::token_units(unit));
  s.lease_end_ns = t.lease_end_ns;
  s.after_lease = t.open ? 1 : 0;
  if (t.lease_end_ns == 0) return s;
  s.after_rate_q40 = q40_of(unit, p.after);
  s.own_rate_q40 = q40_of(unit, p.own);
  s.own_at_ns = t.own_at_ns;
  return s;
}

bool write_falling(std::span<curve_change> changes, phase_times const& t, std::int64_t now_ns) {
  bool is_any = false;
  for (auto const& c : changes) {
    phases const low = lower_of(*c.in_force, c.wanted);
    if (low == *c.in_force) continue;
    write_phases(c, low, t, now_ns);
    is_any = true;
  }
  return is_any;
}

/// The ends move even where the rates do not.
void write_wanted(std::span<curve_change> changes, phase_times const& t, std::int64_t now_ns) {
  for (auto const& c : changes) write_phases(c, c.wanted, t, now_ns);
}

}  // namespace sluice::node
