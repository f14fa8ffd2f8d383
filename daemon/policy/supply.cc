// SPDX-License-Identifier: Apache-2.0
#include "policy/supply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/units.h"
#include "policy/cost_file.h"
#include "policy/site.h"

namespace sluice::policy {

namespace {

constexpr std::uint64_t least_part = 100;  // of the most, where no least is written

cost_file const* costs_of(site const& s, supply const& of) {
  if (of.unit != core::unit_kind::vops) return nullptr;
  for (auto const& spec : s.targets)
    if (spec.name == of.target) return spec.costs.get();
  return nullptr;
}

/// Of VOPs no more than the file system gives whatever meets, however much was written.
std::uint64_t promisable(site const& s, supply const& of) {
  cost_file const* const costs = costs_of(s, of);
  if (costs == nullptr) return of.capacity;
  return std::min(of.capacity, static_cast<std::uint64_t>(costs->provisionable_vops * 1000));
}

/// The threads are those of the fastest point: so many filled the device with small requests.
std::optional<measured_costs> measured_of(site const& s, supply const& of) {
  cost_file const* const costs = costs_of(s, of);
  if (costs == nullptr) return std::nullopt;
  measured_costs m = {static_cast<std::uint64_t>(costs->provisionable_vops * 1000),
                      static_cast<std::uint64_t>(costs->max_vops * 1000), 0};
  double fastest = 0;
  for (auto const* curve : {&costs->read[1], &costs->write[1]})
    for (auto const& point : *curve)
      if (point.how.threads != 0 && point.how.per_s > fastest) {
        fastest = point.how.per_s;
        m.threads = point.how.threads;
      }
  return m.threads != 0 ? std::optional(m) : std::nullopt;
}

/// `50k/s (gold) + 170k/s (silver)`, and what it adds up to.
struct promise {
  std::uint64_t milli = 0;
  std::string sum;
  std::string origin;  // of the last
};

promise promised(site const& s, supply const& of) {
  promise p;
  for (auto const& c : s.classes) {
    auto const share = share_of(s, c.name, of);
    if (!share || !share->reservation) continue;
    p.milli += milli_per_second(*share->reservation);
    p.sum += fmt::format("{}{} ({})", p.sum.empty() ? "" : " + ",
                         rate_text(of.unit, share->reservation->rate_q40), c.name);
    p.origin = share->origin;
  }
  return p;
}

/// A steered capacity never falls below what is written, or else below the reservations.
void read_bounds(site const& s, supply& of) {
  of.least = of.lowest = of.capacity;
  of.promisable = promisable(s, of);
  of.measured = measured_of(s, of);
  auto const target = s.steered.find(of.target);
  if (target == s.steered.end()) return;
  auto const found = target->second.find(of.resource);
  if (found == target->second.end()) return;
  of.steered = found->second;
  if (of.steered->least)
    of.promisable = std::min(of.promisable, milli_per_second(*of.steered->least));
  of.lowest = of.steered->least
                  ? milli_per_second(*of.steered->least)
                  : std::clamp(promised(s, of).milli, of.capacity / least_part, of.capacity);
  if (!of.steered->is_shadow) of.least = of.lowest;
}

}  // namespace

std::vector<supply> supplies(site const& s) {
  std::vector<supply> out;  // two sorted maps give the order
  for (auto const& [target, resources] : s.capacity)
    for (auto const& [resource, capacity] : resources) {
      supply of;
      of.target = target;
      of.resource = resource;
      of.capacity = milli_per_second(capacity);
      of.unit = capacity.unit;
      read_bounds(s, of);
      out.push_back(std::move(of));
    }
  return out;
}

std::optional<share> share_of(site const& s, std::string const& qos_class, supply const& of) {
  for (auto const& c : s.classes) {
    if (c.name != qos_class) continue;
    auto const t = c.shares.find(of.target);
    if (t == c.shares.end()) return std::nullopt;
    auto const r = t->second.find(of.resource);
    if (r == t->second.end()) return std::nullopt;
    return r->second;
  }
  return std::nullopt;
}

own_part own_part_of(site const& s, supply const& of) {
  control_settings const& c = s.control;
  if (c.nodes.empty()) return {};
  auto const part = [&](std::uint32_t ppm) {
    return static_cast<std::uint64_t>(core::u128(of.least) * ppm / 1'000'000 / c.nodes.size());
  };
  return {part(c.escrow_ppm), part(c.floor_ppm)};
}

std::uint64_t policy_hash(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325ull;
  for (unsigned char c : text) sum = (sum ^ c) * 0x100000001b3ull;
  return sum == 0 ? 1 : sum;
}

void check_reservations(site const& s) {
  for (auto const& of : supplies(s)) {
    promise const p = promised(s, of);
    if (p.milli <= of.promisable) continue;
    auto const text = [&](std::uint64_t milli) {
      return rate_text(of.unit, rate_q40_of(milli, of.unit));
    };
    bool const is_floor = of.promisable < of.capacity || of.unit == core::unit_kind::vops;
    bool const is_least =
        of.steered && of.steered->least && of.promisable == milli_per_second(*of.steered->least);
    char const* const what = is_least   ? "the \"min\" of its capacity"
                             : is_floor ? "what its file system gives whatever meets"
                                        : "its capacity";
    throw usage_error(
        fmt::format("{}: reservations of {} exceed {}: {} = {}, {} more than the {} there are; "
                    "lower a reservation (one job of each class must fit)",
                    p.origin, of.name(), what, p.sum, text(p.milli), text(p.milli - of.promisable),
                    text(of.promisable)));
  }
}

}  // namespace sluice::policy
