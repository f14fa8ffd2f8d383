// SPDX-License-Identifier: Apache-2.0
// A cost file as text: JSON with a row per line, so that people can read it and compare two.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "policy/cost_file.h"

namespace sluice::policy {

namespace {

using json = nlohmann::ordered_json;

/// Six digits say all that a measurement knows.
double rounded(double v) {
  if (v == 0 || !std::isfinite(v)) return 0;
  double const step = std::pow(10, std::floor(std::log10(std::fabs(v))) - 5);
  double const kept = std::round(v / step) * step;
  return std::strtod(fmt::format("{:.6g}", kept).c_str(), nullptr);
}

/// Whole numbers without a point.
json figure(double v) {
  double const kept = rounded(v);
  if (kept == std::floor(kept) && std::fabs(kept) < 1e15) return static_cast<std::int64_t>(kept);
  return kept;
}

std::string line(json const& row) {
  return row.dump(-1, ' ', false, json::error_handler_t::replace);
}

void add_measured(json& row, measured const& how) {
  if (how.per_s == 0) return;
  row["per_s"] = figure(how.per_s);
  row["spread"] = figure(how.spread);
  if (how.is_unstable) row["unstable"] = true;
  row["p50_us"] = figure(how.p50_us);
  row["p99_us"] = figure(how.p99_us);
  row["threads"] = how.threads;
}

std::string rows_text(std::vector<json> const& rows, char const* indent) {
  std::string out = "[";
  for (std::size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("{}\n{}{}", i > 0 ? "," : "", indent, line(rows[i]));
  return out + "]";
}

std::string curve_text(cost_curve const& curve) {
  std::vector<json> rows;
  for (cost_point const& p : curve) {
    json row = {{"bytes", p.bytes}, {"cost", figure(p.cost)}};
    add_measured(row, p.how);
    rows.push_back(row);
  }
  return rows_text(rows, "    ");
}

void add_direction(std::string& out, char const* name, cost_curve const (&curves)[2]) {
  if (curves[1].empty()) return;
  out += fmt::format(",\n\"{}\": {{\n  \"aligned\": {}", name, curve_text(curves[1]));
  if (!curves[0].empty()) out += fmt::format(",\n  \"unaligned\": {}", curve_text(curves[0]));
  out += "}";
}

void add_provenance(std::string& out, provenance const& p) {
  if (!p.is_known()) return;
  json row = json::object();
  auto const put = [&row](char const* key, std::string const& value) {
    if (!value.empty()) row[key] = value;
  };
  put("path", p.path);
  put("device", p.device);
  put("fs", p.fs);
  put("source", p.source);
  put("options", p.options);
  put("identity", p.identity);
  put("kernel", p.kernel);
  put("host", p.host);
  put("time", p.time);
  put("io", p.io);
  row["load"] = figure(p.load);
  out += ",\n\"provenance\": " + row.dump(2, ' ', false, json::error_handler_t::replace);
}

void add_ops(std::string& out, std::vector<op_cost> const& ops) {
  if (ops.empty()) return;
  out += ",\n\"ops\": {";
  for (std::size_t i = 0; i < ops.size(); ++i) {
    json row = {{"cost", figure(ops[i].cost)}};
    add_measured(row, ops[i].how);
    out += fmt::format("{}\n  \"{}\": {}", i > 0 ? "," : "", ops[i].op, line(row));
  }
  out += "}";
}

void add_rows(std::string& out, char const* name, std::vector<json> const& rows) {
  if (!rows.empty()) out += fmt::format(",\n\"{}\": {}", name, rows_text(rows, "  "));
}

}  // namespace

std::string cost_file_text(cost_file const& c) {
  std::string out = fmt::format("{{\n\"version\": {}", cost_file_version);
  add_provenance(out, c.from);
  out += fmt::format(",\n\"max_vops\": {},\n\"provisionable_vops\": {}", line(figure(c.max_vops)),
                     line(figure(c.provisionable_vops)));
  if (c.by_device) out += fmt::format(",\n\"charge\": \"{}\"", charge_names()[1]);
  add_direction(out, "read", c.read);
  add_direction(out, "write", c.write);
  add_ops(out, c.ops);
  std::vector<json> rows;
  for (side_cost const& s : c.beside) {
    rows.push_back({{"kind", s.kind}, {"bytes", s.bytes}, {"cost", figure(s.cost)}});
    add_measured(rows.back(), s.how);
  }
  add_rows(out, "beside", rows);
  rows.clear();
  for (interference const& i : c.grid)
    rows.push_back({{"readers", figure(i.readers)},
                    {"read_bytes", i.read_bytes},
                    {"write_bytes", i.write_bytes},
                    {"vops", figure(i.vops)}});
  add_rows(out, "interference", rows);
  rows.clear();
  for (verified_pair const& p : c.pairs)
    rows.push_back({{"kind", p.kind},
                    {"bytes", p.bytes},
                    {"ratio", {figure(p.ratio[0]), figure(p.ratio[1])}},
                    {"mmr", figure(p.mmr)}});
  add_rows(out, "pairs", rows);
  return out + "\n}\n";
}

}  // namespace sluice::policy
