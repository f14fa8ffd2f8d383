// SPDX-License-Identifier: Apache-2.0
#include "policy/quantity.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace sluice::policy {

std::string short_number(double value, bool bytes) {
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

std::string rate_words(std::optional<double> per_s, bool bytes) {
  return per_s ? short_number(*per_s, bytes) + (bytes ? "B/s" : "/s") : "unbounded";
}

}  // namespace sluice::policy
