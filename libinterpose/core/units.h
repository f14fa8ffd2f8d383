// SPDX-License-Identifier: Apache-2.0
// Problem: people write 200MiB/s, 1.5k/s or 10/min; buckets count units per nanosecond.
// Idea: a rate is kept as an exact fraction, whole units per period; a decimal point only makes the
// period longer (1.5/s is 15 per 10 s). Rounding happens once, on the way to Q24.40.
// What stays true: no heap, usable at compile time; what format writes, parse reads back unchanged;
// a refused text comes with the place and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/durations.h"
#include "core/unit_kind.h"

namespace sluice::core {

struct amount {
  std::uint64_t units;
  bool is_bytes;  // written with a B; a bare number may still be meant as bytes
  constexpr bool operator==(amount const&) const = default;
};

struct rate {
  std::uint64_t units;
  std::uint64_t period_ns;
  bool is_bytes;
  constexpr bool operator==(rate const&) const = default;
};

template <typename T>
struct parsed {
  T value{};
  std::size_t error_at = 0;
  char const* reason = nullptr;  // null: fine
  constexpr bool ok() const { return reason == nullptr; }
};

constexpr int most_decimals = 9;

struct suffix {
  std::string_view text;
  std::uint64_t times;
};

// Longer ones first: "Mi" must not be read as "M".
constexpr suffix suffixes[] = {{"Ti", 1ull << 40}, {"Gi", 1ull << 30},   {"Mi", 1ull << 20},
                               {"Ki", 1ull << 10}, {"T", 1000000000000}, {"G", 1000000000},
                               {"M", 1000000},     {"k", 1000},          {"K", 1000}};

constexpr suffix periods[] = {{"s", second_ns}, {"min", 60 * second_ns}, {"h", 3600 * second_ns}};

// units / 10^decimals
struct decimal {
  std::uint64_t units;
  int decimals;
  bool is_bytes;
};

constexpr std::uint64_t power_of_ten(int n) {
  std::uint64_t result = 1;
  while (n-- > 0) result *= 10;
  return result;
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a number with its suffix from the front; error_at is where it stopped, error or not.
constexpr parsed<decimal> parse_decimal(std::string_view text) {
  parsed<decimal> r;
  std::size_t& at = r.error_at;
  u128 units = 0;
  constexpr u128 most = ~std::uint64_t{0};
  auto fail = [&](char const* reason) {
    r.reason = reason;
    return r;
  };
  auto digits = [&](bool after_point) {
    std::size_t const from = at;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      units = units * 10 + static_cast<unsigned>(text[at] - '0');
      if (units > most) return fail("number too large"), false;
      if (after_point && ++r.value.decimals > most_decimals)
        return fail("too many digits after the point"), false;
    }
    return at != from || (fail("expected a digit"), false);
  };
  if (!digits(false)) return r;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digits(true)) return r;
  }
  for (suffix const& s : suffixes) {
    if (!text.substr(at).starts_with(s.text)) continue;
    units *= s.times;
    if (units / power_of_ten(r.value.decimals) > most) return fail("number too large");
    at += s.text.size();
    break;
  }
  if (at < text.size() && text[at] == 'B') {
    r.value.is_bytes = true;
    ++at;
  }
  while (r.value.decimals > 0 && (units % 10 == 0 || units > most)) {
    units /= 10;
    --r.value.decimals;
  }
  r.value.units = static_cast<std::uint64_t>(units);
  return r;
}

// "200MiB", "5k", "1.5M": whole units, rounded to the nearest.
constexpr parsed<amount> parse_amount(std::string_view text) {
  parsed<decimal> d = parse_decimal(text);
  if (!d.ok()) return {{}, d.error_at, d.reason};
  if (d.error_at != text.size()) return {{}, d.error_at, "unknown suffix"};
  std::uint64_t const scale = power_of_ten(d.value.decimals);
  std::uint64_t const half = d.value.units % scale >= scale - scale / 2 && scale > 1 ? 1 : 0;
  return {{d.value.units / scale + half, d.value.is_bytes}, 0, nullptr};
}

// "5k/s", "200MiB/s", "10/min", "0"; without a period it is per second.
constexpr parsed<rate> parse_rate(std::string_view text) {
  parsed<decimal> d = parse_decimal(text);
  std::size_t at = d.error_at;
  if (!d.ok()) return {{}, at, d.reason};
  std::uint64_t period_ns = second_ns;
  if (at != text.size()) {
    if (text[at] != '/') return {{}, at, "unknown suffix"};
    ++at;
    period_ns = 0;
    for (suffix const& p : periods)
      if (text.substr(at) == p.text) period_ns = p.times;
    if (period_ns == 0) return {{}, at, "expected s, min or h"};
  }
  u128 const period = u128(period_ns) * power_of_ten(d.value.decimals);
  if (period > ~std::uint64_t{0}) return {{}, 0, "too many digits after the point"};
  return {{d.value.units, static_cast<std::uint64_t>(period), d.value.is_bytes}, 0, nullptr};
}

// The rate of a bucket that counts in this unit; false when out of range.
constexpr bool bucket_rate(rate const& r, unit_kind unit, std::uint64_t& rate_q40) {
  if (r.units > ~std::uint64_t{0} / token_units(unit)) return false;
  return make_rate(r.units * token_units(unit), r.period_ns, rate_q40);
}

// Tokens per second, for reports.
constexpr double per_second(std::uint64_t rate_q40, unit_kind unit) {
  double const units = static_cast<double>(rate_q40) * 1e9 / static_cast<double>(1ull << 40);
  return units / static_cast<double>(token_units(unit));
}

// ---------------------------------------------------------------------------- writing

struct short_text {
  char data[40] = {};
  std::size_t size = 0;
  constexpr void add(char c) {
    if (size < sizeof data) data[size++] = c;
  }
  constexpr void add(std::string_view s) {
    for (char c : s) add(c);
  }
  constexpr std::string_view view() const { return {data, size}; }
};

// units / scale with at most nine decimals; empty when that is not exact.
constexpr short_text exact_decimal(u128 units, u128 scale) {
  short_text out;
  char reversed[40] = {};
  std::size_t n = 0;
  u128 whole = units / scale;
  do reversed[n++] = static_cast<char>('0' + static_cast<int>(whole % 10));
  while ((whole /= 10) != 0 && n < sizeof reversed);
  while (n > 0) out.add(reversed[--n]);
  u128 rest = units % scale;
  if (rest != 0) out.add('.');
  for (int i = 0; rest != 0; ++i) {
    if (i == most_decimals) return {};
    rest *= 10;
    out.add(static_cast<char>('0' + static_cast<int>(rest / scale)));
    rest %= scale;
  }
  return out;
}

// The shortest exact text; of two equally long ones that with the larger suffix.
constexpr short_text format_decimal(decimal const& d) {
  std::uint64_t const scale = power_of_ten(d.decimals);
  short_text best = exact_decimal(d.units, scale);
  std::uint64_t best_times = 1;
  for (suffix const& s : suffixes) {
    if (s.text == "K" || (s.text.size() == 2 && !d.is_bytes)) continue;
    if (u128(d.units) < u128(scale) * s.times) continue;
    short_text candidate = exact_decimal(d.units, u128(scale) * s.times);
    if (candidate.size == 0) continue;
    candidate.add(s.text);
    bool const shorter = candidate.size < best.size || best.size == 0;
    if (!shorter && (candidate.size != best.size || s.times < best_times)) continue;
    best = candidate;
    best_times = s.times;
  }
  if (d.is_bytes) best.add('B');
  return best;
}

// A period that parse_rate() cannot produce is written per second, rounded to thousandths.
constexpr short_text format_rate(rate const& r) {
  for (suffix const& p : periods) {
    for (int decimals = 0; decimals <= most_decimals; ++decimals) {
      if (u128(p.times) * power_of_ten(decimals) != r.period_ns) continue;
      short_text out = format_decimal({r.units, decimals, r.is_bytes});
      out.add('/');
      out.add(p.text);
      return out;
    }
  }
  u128 const thousandths =
      r.period_ns == 0 ? 0 : u128(r.units) * (u128(second_ns) * 1000) / r.period_ns;
  bool const fits = thousandths <= ~std::uint64_t{0};
  std::uint64_t const units = static_cast<std::uint64_t>(fits ? thousandths : thousandths / 1000);
  short_text out = format_decimal({units, fits ? 3 : 0, r.is_bytes});
  out.add("/s");
  return out;
}

}  // namespace sluice::core
