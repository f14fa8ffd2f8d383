// SPDX-License-Identifier: Apache-2.0
#include "verbs/views/steered.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/quantity.h"
#include "policy/change.h"

namespace sluice::verbs {

namespace {

struct sign_row {
  std::string_view sign, words;
};
constexpr sign_row signs[] = {
    {"quiet", "It stays, for there are no calls"},
    {"unused", "It stays, for nobody wants more"},
    {"rising", "It rises"},
    {"holding", "It stays"},
    {"falling", "It falls"},
    {"lowest", "It falls no further"},
    {"highest", "It rises no further"},
};

std::string_view words_of(std::string_view sign) {
  for (auto const& row : signs)
    if (row.sign == sign) return row.words;
  return sign;
}

std::string found_in_words(rate r, core::unit_kind unit) {
  return rate_words(static_cast<double>(r) / 1000, unit);
}

}  // namespace

steered_view steered_by(policy::auto_capacity const& how, rate least, rate most, rate found,
                        std::string_view sign, std::uint32_t slow_ppm) {
  return {found,        least, most, how.wanted_ns, how.slow_ppm, slow_ppm, std::string(sign),
          how.is_shadow};
}

std::string steered_in_words(steered_view const& v, core::unit_kind unit) {
  std::string const bounds = fmt::format("between {} and {}", policy::bound_text(v.least, unit),
                                         policy::bound_text(v.most, unit));
  std::string const now = v.is_shadow
                              ? fmt::format("Its capacity is the largest; steered it were {}, {}.",
                                            found_in_words(v.found, unit), bounds)
                              : fmt::format("Nobody wrote its capacity: it is {} now, {}.",
                                            found_in_words(v.found, unit), bounds);
  return fmt::format("{} {}: {} % of the calls took longer than {}, and {:g} % may.", now,
                     words_of(v.sign), short_number(v.slow_ppm / 1e4, core::unit_kind::ops),
                     duration_text(v.wanted_ns), v.may_be_ppm / 1e4);
}

nlohmann::json steered_row(steered_view const& v) {
  auto const tokens = [](rate r) { return static_cast<double>(r) / 1000; };
  return {{"found", tokens(v.found)},
          {"min", tokens(v.least)},
          {"max", tokens(v.most)},
          {"latency_s", static_cast<double>(v.wanted_ns) / 1e9},
          {"slow_allowed", v.may_be_ppm / 1e6},
          {"slow", v.slow_ppm / 1e6},
          {"state", v.sign},
          {"shadow", v.is_shadow}};
}

std::string drift_in_words(drift_view const& v) {
  auto const text = [](rate r) { return found_in_words(r, core::unit_kind::vops); };
  if (v.sign == "less")
    return fmt::format(
        "Its costs may be out of date. Busy, it gave {}, and {} were measured whatever "
        "meets. Or others use it too.",
        text(v.given), text(v.floor));
  if (v.sign == "more")
    return fmt::format(
        "Its costs may be out of date. It gave {}, and {} were measured at most. Or "
        "reads come from the page cache.",
        text(v.given), text(v.most));
  return {};
}

nlohmann::json drift_row(drift_view const& v) {
  auto const tokens = [](rate r) { return static_cast<double>(r) / 1000; };
  return {{"state", v.sign},
          {"given", v.given != 0 ? nlohmann::json(tokens(v.given)) : nlohmann::json()},
          {"floor", tokens(v.floor)},
          {"most", tokens(v.most)}};
}

}  // namespace sluice::verbs
