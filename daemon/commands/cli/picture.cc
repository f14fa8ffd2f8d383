// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/picture.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/quantity.h"

namespace sluice::cli {

namespace {

constexpr double most_count = 1e15;  // of anything there are fewer

nlohmann::json const& field(nlohmann::json const& from, char const* key) {
  static nlohmann::json const nothing;
  if (!from.is_object()) return nothing;
  auto const at = from.find(key);
  return at == from.end() ? nothing : *at;
}

std::string text(nlohmann::json const& from, char const* key) {
  nlohmann::json const& f = field(from, key);
  return f.is_string() ? printable(f.get<std::string>()) : std::string();
}

double number(nlohmann::json const& from, char const* key) {
  nlohmann::json const& f = field(from, key);
  return f.is_number() ? f.get<double>() : 0;
}

std::optional<double> number_if(nlohmann::json const& from, char const* key) {
  nlohmann::json const& f = field(from, key);
  return f.is_number() ? std::optional(f.get<double>()) : std::nullopt;
}

/// A number, or the length of a list.
std::uint64_t count(nlohmann::json const& from, char const* key) {
  nlohmann::json const& f = field(from, key);
  if (f.is_array()) return f.size();
  return static_cast<std::uint64_t>(std::clamp(number(from, key), 0.0, most_count));
}

/// The list's members; none of another type.
template <typename Row, typename Read>
std::vector<Row> each(nlohmann::json const& from, char const* key, Read read) {
  std::vector<Row> out;
  nlohmann::json const& list = field(from, key);
  if (list.is_array())
    for (auto const& member : list) out.push_back(read(member));
  return out;
}

supply_row read_supply(nlohmann::json const& s) {
  supply_row row;
  row.supply = text(s, "supply");
  row.capacity = number(s, "capacity");
  row.budget = number(s, "budget");
  row.granted = number(s, "granted");
  row.served = number(s, "served");
  row.demand = number_if(s, "demand");
  row.why = text(s, "why");
  return row;
}

void add_amounts(std::map<std::string, node_row>& rows, nlohmann::json const& node, char const* key,
                 double node_row::*amount) {
  nlohmann::json const& by_supply = field(node, key);
  if (!by_supply.is_object()) return;
  for (auto const& [supply, value] : by_supply.items())
    if (value.is_number()) rows[printable(supply)].*amount = value.get<double>();
}

std::vector<node_row> read_node(nlohmann::json const& node) {
  std::map<std::string, node_row> rows;
  add_amounts(rows, node, "granted", &node_row::granted);
  add_amounts(rows, node, "served", &node_row::served);
  if (rows.empty()) rows[""];
  std::vector<node_row> out;
  for (auto& [supply, row] : rows) {
    row.supply = supply;
    row.node = text(node, "name");
    row.role = text(node, "role");
    row.state = text(node, "state");
    row.age_s = number(node, "age_s");
    row.jobs = count(node, "jobs");
    out.push_back(row);
  }
  return out;
}

}  // namespace

std::string job_id(stream_row const& row) {
  return row.uid ? std::to_string(*row.uid) + "@" + row.job : row.job;
}

std::vector<stream_row> read_job(nlohmann::json const& job) {
  stream_row row;
  row.job = text(job, "job");
  row.user = text(job, "user");
  if (field(job, "uid").is_number_unsigned()) row.uid = count(job, "uid");
  row.qos_class = text(job, "class");
  row.nodes = count(job, "nodes");
  row.processes = count(job, "processes");
  row.escaped = count(job, "escaped");
  row.state = text(job, "state");
  row.is_paused = row.state == "paused";
  row.is_own = field(job, "own") == true;
  row.is_overridden = !field(job, "override").is_null();
  auto out = each<stream_row>(job, "streams", [&](nlohmann::json const& s) {
    stream_row stream = row;
    stream.supply = text(s, "supply");
    stream.demand = number_if(s, "demand");
    stream.grant = number_if(s, "grant");
    stream.served = number(s, "served");
    stream.beyond = number(s, "would_delay");
    stream.waiting = number(s, "waiting");
    stream.waiters = count(s, "waiters");
    stream.blocked = std::clamp(number(s, "blocked"), 0.0, 1.0);
    return stream;
  });
  row.demand = row.grant = 0;
  if (out.empty()) out.push_back(row);
  return out;
}

picture read_picture(nlohmann::json const& answer) {
  picture p;
  p.cycle = count(answer, "cycle");
  p.supplies = each<supply_row>(answer, "supplies", read_supply);
  p.jobs = count(answer, "jobs");
  for (auto const& rows : each<std::vector<stream_row>>(answer, "jobs", read_job))
    p.streams.insert(p.streams.end(), rows.begin(), rows.end());
  for (auto const& rows : each<std::vector<node_row>>(answer, "nodes", read_node))
    p.nodes.insert(p.nodes.end(), rows.begin(), rows.end());
  return p;
}

}  // namespace sluice::cli
