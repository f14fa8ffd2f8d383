// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"

namespace sluice::calibrate {

namespace {

constexpr double good_mmr = 0.8;    // below it what is promised is not kept
constexpr double device_us = 50.0;  // a call that asks a device takes at least as long

double vops(std::uint32_t milli) { return milli / double{core::milli_per_vop}; }

curve_digest curve_of(char const* name, std::uint32_t const (&milli)[core::cost_points],
                      policy::cost_curve const& measured) {
  curve_digest out = {name, {}};
  for (unsigned i = 0; i < core::cost_points; ++i) {
    charge c;
    c.bytes = core::cost_point_bytes(i);
    c.label = size_words(c.bytes);
    c.cost = vops(milli[i]);
    for (auto const& p : measured)
      if (p.bytes == c.bytes) {
        c.is_measured = true;
        c.how = p.how;
      }
    out.charges.push_back(c);
  }
  return out;
}

charge op_of(policy::cost_file const& costs, std::string_view name, std::uint32_t milli) {
  charge c;
  c.label = name;
  c.cost = vops(milli);
  for (auto const& row : costs.ops)
    if (row.op == name) {
      c.is_measured = true;
      c.how = row.how;
      c.is_of_processor = row.how.p50_us > 0 && row.how.p50_us < device_us;
    }
  return c;
}

std::string where(policy::provenance const& p) {
  if (!p.is_known()) return "Written by hand: it does not say of which mount it is true.";
  std::string out = fmt::format("{} {}", p.fs, p.path);
  if (!p.source.empty()) out += " on " + p.source;
  if (!p.io.empty()) out += fmt::format(", {} I/O", p.io);
  if (!p.host.empty()) out += ", " + p.host;
  if (!p.time.empty()) out += ", " + p.time;
  return out + fmt::format(", load {:.1f}.", p.load);
}

std::string stability(digest const& d) {
  std::size_t all = 0, unstable = 0;
  auto const count = [&](std::vector<charge> const& charges) {
    for (charge const& c : charges) {
      all += c.is_measured && c.how.per_s > 0;
      unstable += c.is_measured && c.how.is_unstable;
    }
  };
  for (auto const& curve : d.curves) count(curve.charges);
  count(d.ops);
  if (all == 0) return {};
  if (unstable == 0)
    return fmt::format("All {} costs were the same within 10 % in each round.", all);
  return fmt::format(
      "{} of {} costs are unstable: rounds differed by more than 10 %. Calibrate when it is "
      "quieter.",
      unstable, all);
}

std::string of_processor(digest const& d) {
  auto const is_one = [](charge const& c) { return c.is_of_processor; };
  auto const n = std::count_if(d.ops.begin(), d.ops.end(), is_one);
  if (n == 0) return {};
  return fmt::format(
      "Operations of less than {:.0f} us a call show the speed of the processor, which differs "
      "from "
      "one calibration to the next: {} of them.",
      device_us, n);
}

std::string promise(policy::cost_file const& c) {
  if (c.pairs.empty()) return {};
  double least = 1;
  for (auto const& p : c.pairs) least = std::min(least, p.mmr);
  std::string out = fmt::format(
      "Of two tenants held to half of the floor each, the worse got {:.2f} of the better's share "
      "at "
      "least, in {} pairs.",
      least, c.pairs.size());
  if (least < good_mmr) out += " That is too little for reservations.";
  return out;
}

}  // namespace

std::string cost_words(double cost) {
  if (cost == 0) return "0";
  return cost >= 99.95 ? fmt::format("{:.0f}", cost)
         : cost >= 1   ? fmt::format("{:.{}f}", cost, cost >= 9.995 ? 1 : 2)
                       : fmt::format("{:#.2g}", cost);
}

digest digest_of(policy::cost_file const& c, std::string const& file) {
  core::cost_table const t = policy::to_table(c);
  digest d;
  d.file = file;
  d.costs = c;
  d.curves = {curve_of("read", t.read_milli[1], c.read[1]),
              curve_of("write", t.write_milli[1], c.write[1]),
              curve_of("read, unaligned", t.read_milli[0], c.read[0]),
              curve_of("write, unaligned", t.write_milli[0], c.write[0])};
  d.ops.push_back(op_of(c, "create", t.create_milli));
  for (unsigned i = 0; i < core::op_count; ++i)
    if (!core::op_table[i].has_bytes)
      d.ops.push_back(op_of(c, core::op_table[i].name, t.op_milli[i]));
  d.said.push_back(where(c.from));
  d.said.push_back(fmt::format(
      "{} VOP/s at most, of small random requests; {} VOP/s whatever meets: the floor, which "
      "can be promised.",
      short_number(c.max_vops, core::unit_kind::ops),
      short_number(c.provisionable_vops, core::unit_kind::ops)));
  for (auto const& line : {stability(d), of_processor(d), promise(c)})
    if (!line.empty()) d.said.push_back(line);
  d.said.push_back(c.by_device ? "Reads and writes cost what the device does for them: what the "
                                 "page cache has is free."
                               : "Reads and writes cost what their sizes say, from the page cache "
                                 "too.");
  return d;
}

}  // namespace sluice::calibrate
