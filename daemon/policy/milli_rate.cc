// SPDX-License-Identifier: Apache-2.0
#include "policy/milli_rate.h"

#include <fmt/format.h>

#include "base/error.h"
#include "core/units.h"

namespace sluice::policy {

rate parse_milli_rate(std::string_view text, std::string const& where, core::unit_kind unit,
                      std::string_view what) {
  rate const r = parse_amount(text, where, unit, what);
  core::rate const written = core::parse_rate(text).value;
  core::u128 const most_ns = core::u128(written.units) * 1000 * second_ns;  // at a thousandth
  if (written.units != 0 && written.period_ns > most_ns)
    throw usage_error(fmt::format("{}: \"{}\" {}", where, text, too_little(unit)));
  return r;
}

std::string too_little(core::unit_kind unit) {
  return fmt::format("is less than {}, the least there is here; to hold everything back write 0",
                     bound_text(1, unit));
}

}  // namespace sluice::policy
