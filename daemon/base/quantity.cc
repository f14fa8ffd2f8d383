// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace sluice {

std::string short_number(double value, core::unit_kind unit) {
  bool const bytes = unit == core::unit_kind::bytes;
  static constexpr char const* decimal[] = {"", "k", "M", "G", "T", "P"};
  static constexpr char const* binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  if (!std::isfinite(value)) return value > 0 ? "inf" : "?";
  if (std::abs(value) < 0.005) return "0";
  double const step = bytes ? 1024 : 1000;
  unsigned i = 0;
  for (; std::abs(value) >= 999.5 && i + 1 < std::size(decimal); ++i) value /= step;
  // From 999.5 on it was divided, so three digits hold it, but for the last suffix.
  return (std::abs(value) >= 99.95 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value)) +
         (bytes ? binary[i] : decimal[i]);
}

std::string rate_words(std::optional<double> per_s, core::unit_kind unit) {
  static constexpr char const* endings[core::unit_count] = {"/s", "B/s", " VOP/s"};
  if (!per_s) return "unbounded";
  return short_number(*per_s, unit) + endings[static_cast<unsigned>(unit) % core::unit_count];
}

std::string time_words(std::uint64_t ns) {
  double const value = static_cast<double>(ns);
  if (ns == 0) return "0";
  if (ns < 1000) return fmt::format("{} ns", ns);
  // Of three digits 999.5 is the next unit already.
  if (ns < 999500) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 999500000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.4g} s", value / 1e9);
}

std::string size_words(std::uint64_t bytes) {
  static constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  unsigned i = 0;
  for (; value >= 1024 && i + 1 < std::size(units); ++i) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[i]);
}

}  // namespace sluice
