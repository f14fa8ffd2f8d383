// SPDX-License-Identifier: Apache-2.0
// From a cost file to the table that the stage charges by: the points that it has, lines between
// them, and for what it says nothing of the cost of the nearest kin.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "policy/cost_file.h"

namespace sluice::policy {

namespace {

constexpr std::string_view nothing = "nothing";

struct kin_row {
  std::string_view op, kin;
};
constexpr kin_row kin_rows[] = {
#define KIN(op, kin) {#op, #kin},
#include "policy/kin.def"
};

using costs = std::vector<double>;  // one per size

std::uint32_t milli(double cost) {
  double const whole = std::round(std::clamp(cost, least_cost, most_cost) * core::milli_per_vop);
  return static_cast<std::uint32_t>(whole);
}

/// As core::curve_milli() has it: flat below the first point, linear in bytes between two,
/// proportional to the size above the last.
double cost_at(cost_curve const& curve, std::uint64_t bytes) {
  auto const x = static_cast<double>(bytes);
  auto const above = std::find_if(curve.begin(), curve.end(),
                                  [&](cost_point const& p) { return p.bytes >= bytes; });
  if (above == curve.end()) return curve.back().cost * x / static_cast<double>(curve.back().bytes);
  if (above == curve.begin() || above->bytes == bytes) return above->cost;
  cost_point const& below = *std::prev(above);
  double const from = static_cast<double>(below.bytes), to = static_cast<double>(above->bytes);
  return below.cost + (above->cost - below.cost) * (x - from) / (to - from);
}

costs costs_of(cost_curve const& curve) {
  costs out;
  for (unsigned i = 0; i < core::cost_points; ++i)
    out.push_back(cost_at(curve, core::cost_point_bytes(i)));
  return out;
}

/// An unaligned write leaves the page at either end to be read first; a small one has one page.
costs unaligned_write(costs const& aligned, double page) {
  costs out = aligned;
  for (unsigned i = 0; i < core::cost_points; ++i)
    out[i] += core::cost_point_bytes(i) < core::cost_alignment ? page : 2 * page;
  return out;
}

void fill(std::uint32_t (&row)[core::cost_points], costs const& from) {
  for (unsigned i = 0; i < core::cost_points; ++i) row[i] = milli(from[i]);
}

constexpr unsigned page_point = 3;
static_assert(core::cost_point_bytes(page_point) == core::cost_alignment);

/// Costs that are known by name: the ops of the file, 4 KiB of data, and nothing.
std::optional<double> known_cost(cost_file const& c, std::string_view name,
                                 core::cost_table const& t) {
  if (name == nothing) return 0;
  if (name == "read") return t.read_milli[1][page_point] / double{core::milli_per_vop};
  if (name == "write") return t.write_milli[1][page_point] / double{core::milli_per_vop};
  for (op_cost const& row : c.ops)
    if (row.op == name) return row.cost;
  return std::nullopt;
}

/// The kin of kin of … until one has a cost: those of one more step after all of the last.
double nearest_cost(cost_file const& c, std::string_view name, core::cost_table const& t) {
  std::vector<std::string_view> line = {name};
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (auto const cost = known_cost(c, line[i], t)) return *cost;
    for (kin_row const& row : kin_rows)
      for (auto const& [of, other] : {kin_row{row.op, row.kin}, kin_row{row.kin, row.op}})
        if (of == line[i] && std::find(line.begin(), line.end(), other) == line.end())
          line.push_back(other);
  }
  return 1;
}

std::uint32_t op_milli(cost_file const& c, std::string_view name, core::cost_table const& t) {
  double const cost = nearest_cost(c, name, t);
  return cost == 0 ? 0 : milli(cost);
}

}  // namespace

core::cost_table to_table(cost_file const& c) {
  core::cost_table t = {};
  costs const read = costs_of(c.read[1].empty() ? c.write[1] : c.read[1]);
  costs const write = costs_of(c.write[1].empty() ? c.read[1] : c.write[1]);
  fill(t.read_milli[1], read);
  fill(t.read_milli[0], c.read[0].empty() ? read : costs_of(c.read[0]));
  fill(t.write_milli[1], write);
  fill(t.write_milli[0],
       c.write[0].empty() ? unaligned_write(write, read[page_point]) : costs_of(c.write[0]));
  for (unsigned i = 0; i < core::op_count; ++i)
    if (!core::op_table[i].has_bytes) t.op_milli[i] = op_milli(c, core::op_table[i].name, t);
  t.create_milli = op_milli(c, "create", t);
  t.by_device = c.by_device ? 1 : 0;
  return t;
}

}  // namespace sluice::policy
