// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/sample.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice::calibrate {

namespace {

using json = nlohmann::json;
constexpr double most_rate = 1e12;
constexpr double most_count = 1 << 16;

std::optional<double> amount(json const& from) {
  if (!from.is_number()) return std::nullopt;
  auto const value = from.get<double>();
  return value >= 0 && value <= most_rate ? std::optional(value) : std::nullopt;
}

std::optional<rate_seen> parse_rate(json const& from) {
  if (!from.is_array() || from.size() != 3) return std::nullopt;
  auto const per_s = amount(from[0]), p50 = amount(from[1]), p99 = amount(from[2]);
  if (!per_s || !p50 || !p99) return std::nullopt;
  return rate_seen{*per_s, *p50, *p99};
}

}  // namespace

std::string sample_line(sample const& s) {
  json rates = json::array();
  for (rate_seen const& r : s.groups) rates.push_back({r.per_s, r.p50_us, r.p99_us});
  json row = {{"step", s.step}, {"round", s.round}, {"threads", s.threads}, {"rates", rates}};
  if (s.is_thin) row["thin"] = true;
  if (!s.missing.empty()) row["missing"] = s.missing;
  return row.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<sample> parse_sample(std::string_view line) {
  json const row = json::parse(line, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  sample out;
  auto const step = row.find("step"), round = row.find("round"), threads = row.find("threads"),
             rates = row.find("rates"), missing = row.find("missing");
  auto const none = row.end();
  if (step == none || !step->is_string() || round == none || threads == none || rates == none ||
      !rates->is_array() || (missing != none && !missing->is_string()))
    return std::nullopt;
  auto const of_round = amount(*round), of_threads = amount(*threads);
  if (!of_round || !of_threads || *of_round > most_count || *of_threads > most_count)
    return std::nullopt;
  out.step = *step;
  out.round = static_cast<unsigned>(*of_round);
  out.threads = static_cast<unsigned>(*of_threads);
  if (missing != none) out.missing = *missing;
  out.is_thin = row.contains("thin");
  for (json const& item : *rates) {
    auto const rate = parse_rate(item);
    if (!rate) return std::nullopt;
    out.groups.push_back(*rate);
  }
  return out;
}

sample const* find_sample(std::vector<sample> const& all, std::string_view step, unsigned round) {
  for (sample const& s : all)
    if (s.round == round && s.step == step) return &s;
  return nullptr;
}

}  // namespace sluice::calibrate
