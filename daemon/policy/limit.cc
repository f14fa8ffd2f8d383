// SPDX-License-Identifier: Apache-2.0
#include "policy/limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/suggest.h"
#include "core/units.h"
#include "policy/resource.h"

namespace sluice::policy {

namespace {

constexpr char const* examples = "write it like 1000/s, 5k/s, 90/min, 200MiB/s or 0";

error refusal(std::string_view text, std::string const& where, std::string const& why) {
  return usage_error(fmt::format("{}: \"{}\": {}; {}", where, text, why, examples));
}

core::rate read_rate(std::string_view text, std::string const& where) {
  auto const written = core::parse_rate(text);
  if (!written.ok())
    throw refusal(text, where,
                  fmt::format("{} at \"{}\"", written.reason, text.substr(written.error_at)));
  return written.value;
}

rate in_unit(core::rate const& written, core::unit_kind unit, std::string_view text,
             std::string const& where) {
  rate r;
  r.unit = unit;
  r.any_unit = written.units == 0 && !written.is_bytes;
  if (!core::bucket_rate(written, unit, r.rate_q40))
    throw refusal(
        text, where,
        unit == core::unit_kind::ops ? "too many operations (a B makes it bytes)" : "out of range");
  return r;
}

}  // namespace

rate parse_amount(std::string_view text, std::string const& where) {
  core::rate const written = read_rate(text, where);
  rate r = in_unit(written, written.is_bytes ? core::unit_kind::bytes : core::unit_kind::ops, text,
                   where);
  r.is_bare = !written.is_bytes && text.find('/') == text.npos;
  return r;
}

rate parse_amount(std::string_view text, std::string const& where, core::unit_kind unit,
                  std::string_view what) {
  core::rate const written = read_rate(text, where);
  if (written.units != 0 && written.is_bytes != (unit == core::unit_kind::bytes))
    throw usage_error(fmt::format("{}: {} is measured in {}, like {}", where, what,
                                  core::row_of(unit).noun, core::row_of(unit).example));
  return in_unit(written, unit, text, where);
}

double per_second(core::unit_kind unit, std::uint64_t rate_q40) {
  double const exact = core::per_second(rate_q40, unit);
  double const whole = std::round(exact);
  bool const is_whole = whole != 0 && std::abs(exact - whole) < 1e-6 + whole * 1e-9;
  return is_whole ? whole : std::round(exact * 1e6) / 1e6;
}

std::uint64_t milli_per_second(rate const& r) {
  double const milli = per_second(r.unit, r.rate_q40) * 1000;
  return milli >= 18e18 ? 18'000'000'000'000'000'000u : static_cast<std::uint64_t>(milli + 0.5);
}

std::uint64_t rate_q40_of(std::uint64_t milli_per_second, core::unit_kind unit) {
  core::u128 const units = core::u128(milli_per_second) * core::token_units(unit);
  core::u128 const rate = (units << 40) / 1'000'000'000'000u;  // down: never above the grant
  core::u128 const most = ~std::uint64_t{0};
  return static_cast<std::uint64_t>(rate > most ? most : rate);
}

bool is_unlimited(core::unit_kind unit, std::uint64_t rate_q40) {
  return per_second(unit, rate_q40) >= static_cast<double>(unlimited(unit)) / 1000 * 0.999;
}

std::string rate_text(core::unit_kind unit, std::uint64_t rate_q40) {
  if (rate_q40 == 0) return "paused";
  if (is_unlimited(unit, rate_q40)) return "no limit";
  bool const bytes = unit == core::unit_kind::bytes;
  double const value = per_second(unit, rate_q40);
  bool const is_whole = value == std::round(value);
  core::rate const r =
      is_whole ? core::rate{std::uint64_t(value), second_ns, bytes}
               : core::rate{std::uint64_t(std::round(value * 1000)), 1000 * second_ns, bytes};
  return with_unit(std::string(core::format_rate(r).view()), unit);
}

std::string with_unit(std::string rate, core::unit_kind unit) {
  if (unit == core::unit_kind::vops) rate.insert(std::min(rate.find('/'), rate.size()), " VOP");
  return rate;
}

std::string bound_text(std::uint64_t milli, core::unit_kind unit) {
  if (milli == no_bound) return "none";
  if (milli == 0) return "0";
  bool const bytes = unit == core::unit_kind::bytes;
  // As people write it: whole tokens, unless there is less than a thousand of them.
  if (milli % 1000 == 0 || milli >= 1'000'000)
    return with_unit(std::string(core::format_rate({milli / 1000, second_ns, bytes}).view()), unit);
  return with_unit(std::string(core::format_rate({milli, 1000 * second_ns, bytes}).view()), unit);
}

std::uint64_t parse_selector(std::string_view text, std::string const& where) {
  std::uint64_t const ops = core::ops_of_selector(text);
  if (ops == 0)
    throw usage_error(fmt::format("{}: unknown operation, class or resource \"{}\"{}", where, text,
                                  did_you_mean(text, selector_names())));
  return ops;
}

void check_unit(channel_spec& channel, std::string const& where) {
  if (channel.amount.unit == core::unit_kind::vops) return;
  bool const only_bytes = core::byte_ops_of(channel.ops) == channel.ops;
  if (channel.amount.any_unit && only_bytes) channel.amount.unit = core::unit_kind::bytes;
  if (channel.amount.unit == core::unit_kind::bytes && !only_bytes)
    throw usage_error(where + ": a limit in bytes is for data, read or write only; " +
                      "limit other calls by number, like 1000/s");
}

channel_spec parse_limit(std::string_view text) {
  std::string const where = fmt::format("--limit {}", text);
  auto const equals = text.find('=');
  if (auto const early = text.find('@'); early < equals && equals != std::string_view::npos)
    throw usage_error(fmt::format("{}: the target comes last: --limit {}{}{}", where,
                                  text.substr(0, early), text.substr(equals),
                                  text.substr(early, equals - early)));
  if (equals == std::string_view::npos || equals == 0)
    throw usage_error(where + ": wanted SELECTOR[:ROLE]=AMOUNT[@TARGET], for example open=1000/s");
  auto const at = text.find('@', equals);
  channel_spec channel;
  channel.name = text.substr(0, equals);
  channel.origin = where;
  auto const colon = channel.name.find(':');
  std::string const selector = channel.name.substr(0, colon);
  if (colon != std::string::npos) {
    channel.role = channel.name.substr(colon + 1);
    if (channel.role.empty()) throw usage_error(where + ": no role stands after the colon");
  }
  channel.ops = parse_selector(selector, where);
  auto const amount = text.substr(equals + 1, at - equals - 1);
  bool const is_priced = selector == vops_selector;
  channel.amount = is_priced ? parse_amount(amount, where, core::unit_kind::vops, vops_selector)
                             : parse_amount(amount, where);
  if (at != std::string_view::npos) {
    channel.target = text.substr(at + 1);
    if (channel.target.empty()) throw usage_error(where + ": nothing stands after the @");
    channel.name += "@" + channel.target;
  }
  if (is_priced && channel.target.empty())
    throw usage_error(where +
                      ": what a VOP is depends on the file system: name the tree, for example "
                      "vops=5k/s@/scratch");
  check_unit(channel, where);
  return channel;
}

std::vector<std::string> selector_names() {
  std::vector<std::string> names = {"all"};
  for (auto const& row : resource_rows) names.emplace_back(row.name);
  for (auto const& name : core::class_names) names.emplace_back(name);
  for (auto const& row : core::op_table) names.emplace_back(row.name);
  return names;
}

}  // namespace sluice::policy
