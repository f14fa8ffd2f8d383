// SPDX-License-Identifier: Apache-2.0
#include "policy/auto_read.h"

#include <fmt/format.h>

#include <cmath>

#include "base/duration.h"
#include "base/number.h"
#include "core/durations.h"
#include "core/units.h"
#include "policy/resource.h"

namespace sluice::policy {

namespace {

constexpr double least_percent = 50, most_percent = 99.9, usual_percent = 90;
constexpr std::int64_t least_wanted_ns = 1000, most_wanted_ns = minute_ns;

/// `p90`, `p99.9`. Nothing when it is no such word.
std::optional<double> percent_of(std::string_view word) {
  if (!word.starts_with('p')) return std::nullopt;
  word.remove_prefix(1);
  double value = 0;
  if (!to_number(word, value)) return std::nullopt;
  if (!(value >= least_percent && value <= most_percent)) return std::nullopt;
  return value;
}

void read_latency(reading const& in, node const& n, std::string const& path, auto_capacity& a) {
  std::string const text = in.string(n, path);
  auto const blank = text.find(' ');
  double percent = usual_percent;
  if (blank != text.npos) {
    auto const said = percent_of(std::string_view(text).substr(blank + 1));
    if (!said)
      in.fail(n.at, fmt::format("{}: \"{}\" is no time and percentile like \"5ms p90\" (p{:g} to "
                                "p{:g})",
                                path, text, least_percent, most_percent));
    percent = *said;
  }
  a.wanted_ns = parse_duration(text.substr(0, blank), in.where(n.at) + ": " + path);
  if (a.wanted_ns < least_wanted_ns || a.wanted_ns > most_wanted_ns)
    in.fail(n.at, fmt::format("{} is {}, wanted {} to {}", path, duration_text(a.wanted_ns),
                              duration_text(least_wanted_ns), duration_text(most_wanted_ns)));
  a.slow_ppm = static_cast<std::uint32_t>(std::lround((100 - percent) * 1e4));
}

rate most_of(reading const& in, node const& n, std::string const& resource, cost_file const* costs,
             std::string const& path) {
  if (node const* m = n.find("max")) return in.resource_rate(*m, resource, path + ".max");
  if (unit_of_supply(resource) != core::unit_kind::vops || costs == nullptr)
    in.fail(n.at, path +
                      " has no \"max\": more is never given, so write far more than the server "
                      "can do");
  rate r;
  r.unit = core::unit_kind::vops;
  core::make_rate(static_cast<std::uint64_t>(costs->max_vops * core::milli_per_vop), second_ns,
                  r.rate_q40);
  return r;
}

}  // namespace

auto_reading read_auto(reading const& in, node const& n, std::string const& resource,
                       cost_file const* costs, std::string const& path) {
  in.keys(n, path, {"auto", "min", "max", "latency", "shadow"});
  node const* const is_auto = n.find("auto");
  if (is_auto == nullptr || !in.boolean(*is_auto, path + ".auto"))
    in.fail(n.at, path + " needs \"auto\": true; a capacity that is known is a rate like \"5k/s\"");
  auto_reading out;
  out.most = most_of(in, n, resource, costs, path);
  if (out.most.rate_q40 == 0) in.fail(n.at, path + ".max is 0: nothing could ever be given");
  node const* const latency = n.find("latency");
  if (latency == nullptr)
    in.fail(n.at, path + " has no \"latency\": what calls may take, like \"5ms p90\"");
  read_latency(in, *latency, path + ".latency", out.how);
  if (node const* m = n.find("min")) {
    out.how.least = in.resource_rate(*m, resource, path + ".min");
    if (out.how.least->rate_q40 == 0)
      in.fail(m->at, path + ".min is 0: nothing would be left to see that calls are fast again");
    if (out.how.least->rate_q40 > out.most.rate_q40) in.fail(m->at, path + ".min is above the max");
  }
  if (node const* shadow = n.find("shadow"))
    out.how.is_shadow = in.boolean(*shadow, path + ".shadow");
  return out;
}

}  // namespace sluice::policy
