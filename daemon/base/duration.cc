// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "core/units.h"

namespace sluice {

namespace {

struct time_unit {
  std::string_view text;
  std::int64_t ns;
};

// Longer ones first; m is a minute, as in sleep(1).
constexpr time_unit time_units[] = {{"d", 86'400'000'000'000},
                                    {"h", 3'600'000'000'000},
                                    {"min", 60'000'000'000},
                                    {"m", 60'000'000'000},
                                    {"s", 1'000'000'000},
                                    {"ms", 1'000'000},
                                    {"us", 1'000},
                                    {"ns", 1}};

constexpr std::int64_t longest_ns = 365ll * 86'400 * 1'000'000'000;

std::string in_largest_unit(std::int64_t ns, int digits) {
  for (auto const& u : time_units)
    if (u.text != "m" && ns >= u.ns)
      return fmt::format("{:.{}g}{}", static_cast<double>(ns) / static_cast<double>(u.ns), digits,
                         u.text);
  return "0s";
}

}  // namespace

std::int64_t parse_duration(std::string_view text, std::string const& where) {
  auto const refuse = [&](std::string_view why) {
    return usage_error(
        fmt::format("{}: \"{}\": {}; write it like 100ms, 1s, 10min or 2h", where, text, why));
  };
  std::size_t digits = 0, decimals = 0;
  bool after_point = false;
  core::u128 units = 0;
  for (; digits < text.size(); ++digits) {
    char const c = text[digits];
    if (c == '.' && !after_point && digits > 0) {
      after_point = true;
    } else if (core::is_digit(c)) {
      units = units * 10 + static_cast<unsigned>(c - '0');
      if (after_point && ++decimals > 9) throw refuse("too many digits after the point");
    } else {
      break;
    }
    if (units > core::u128(longest_ns)) throw refuse("longer than a year");
  }
  if (digits == 0) throw refuse("expected a number");
  std::string_view const unit = text.substr(digits);
  if (unit.empty()) throw refuse("the unit is missing");
  for (auto const& u : time_units) {
    if (u.text != unit) continue;
    core::u128 const ns = units * core::u128(u.ns) / core::power_of_ten(static_cast<int>(decimals));
    if (ns > core::u128(longest_ns)) throw refuse("longer than a year");
    return static_cast<std::int64_t>(ns);
  }
  throw refuse(fmt::format("unknown unit \"{}\"", unit));
}

std::string duration_text(std::int64_t ns) { return in_largest_unit(ns, 6); }

std::string until_text(double until_s, double now_s) {
  if (until_s == 0) return "until it is changed";
  until_s = std::clamp(until_s, 0.0, 9e9);  // of which the clock knows the nanoseconds
  auto const when = static_cast<std::time_t>(until_s);
  std::tm local = {};
  char text[64] = {};
  if (localtime_r(&when, &local) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  double const left_ns = std::max(until_s - now_s, 0.0) * 1e9;
  return fmt::format("until {} ({} more)", text, in_largest_unit(std::llround(left_ns), 3));
}

}  // namespace sluice
