// SPDX-License-Identifier: Apache-2.0
#include "runtime/history_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "local/request.h"

namespace sluice::runtime {

namespace {

using nlohmann::json;

constexpr std::size_t page_bytes = 56'000;  // of a packet of 64 KiB; one row is 20 KB

/// Four digits: a picture shows no more, and a packet holds more rows.
json number(double v) {
  if (!std::isfinite(v)) return nullptr;
  if (v == 0) return 0;
  double const scale = std::pow(10, 3 - std::floor(std::log10(std::abs(v))));
  double const out = std::isfinite(scale) && scale > 0 ? std::round(v * scale) / scale : v;
  if (out == std::floor(out) && std::abs(out) < 1e15) return static_cast<std::int64_t>(out);
  return out;
}

bool is_named(history_name const& n, std::string const& job) {
  return n.job == job || n.user + "@" + n.job == job || std::to_string(n.uid) + "@" + n.job == job;
}

}  // namespace

namespace {

json about(history_row const& row) {
  json out = {{"supply", row.name.supply},    {"unit", core::row_of(row.name.unit).name},
              {"class", row.name.qos_class},  {"live", row.is_live},
              {"interval_s", row.interval_s}, {"end_unix_s", row.end_unix_s}};
  if (!row.name.job.empty()) {
    out["job"] = row.name.job;
    out["uid"] = row.name.uid;
    out["user"] = row.name.user;
    out["limit"] = number(row.limit);
  }
  if (row.capacity > 0) out["capacity"] = number(row.capacity);
  if (!row.why.empty()) out["why"] = row.why;
  return out;
}

/// One value of each point; `of`: which.
template <class Of>
json values_of(std::vector<history_point> const& points, Of const& of) {
  json values = json::array();
  for (history_point const& p : points) values.push_back(of(p));
  return values;
}

constexpr std::pair<char const*, float history_point::*> levels[] = {
    {"demand", &history_point::demand},
    {"grant", &history_point::grant},
    {"waiting", &history_point::waiting}};

/// Tokens are whole, and all their digits count.
json amount(double v) {
  if (!std::isfinite(v)) return nullptr;
  if (v == std::floor(v) && std::abs(v) < 1e15) return static_cast<std::int64_t>(v);
  return v;
}

json time_amount(double seconds) {
  if (!std::isfinite(seconds)) return nullptr;
  return std::round(seconds * 1e9) / 1e9;
}

/// With its unfinished interval.
json amounts_json(history_row& row) {
  json out = about(row);
  row.points.push_back(row.open);
  out["end_unix_s"] = row.end_unix_s + row.interval_s;
  for (auto const& [key, field] : levels)
    out[key] = values_of(row.points,
                         [&, field = field](history_point const& p) { return number(p.*field); });
  out["served_sum"] = values_of(row.points, [](auto const& p) { return amount(p.served); });
  out["delayed_sum"] = values_of(row.points, [](auto const& p) { return amount(p.delayed); });
  out["waited_s"] = values_of(row.points, [](auto const& p) { return time_amount(p.waited_s); });
  out["blocked_s"] = values_of(row.points, [](auto const& p) { return time_amount(p.blocked_s); });
  out["beyond_sum"] = values_of(row.points, [](auto const& p) { return amount(p.beyond); });
  if (row.name.job.empty()) return out;
  out["paused_s"] = values_of(row.points, [](auto const& p) { return time_amount(p.paused_s); });
  out["limit"] = values_of(row.points, [](auto const& p) { return number(p.limit); });
  return out;
}

char const* unit_of(op_row const& row) {
  static constexpr char const* names[] = {"ops", "bytes", "s"};
  return names[static_cast<unsigned>(row.unit)];
}

json about(op_row const& row) {
  return {{"job", row.name.job},
          {"uid", row.name.uid},
          {"user", row.name.user},
          {"class", row.name.qos_class},
          {"op", row.op},
          {"unit", unit_of(row)},
          {"live", row.is_live},
          {"interval_s", row.interval_s},
          {"end_unix_s", row.end_unix_s}};
}

json amounts_json(op_row const& row) {
  json out = about(row);
  out["end_unix_s"] = row.end_unix_s + row.interval_s;
  json& sums = out["done_sum"] = json::array();
  auto const told = row.unit == op_unit::seconds ? time_amount : amount;
  for (double v : row.done) sums.push_back(told(v));
  sums.push_back(told(row.open));
  return out;
}

}  // namespace

json history_json(history_row const& row) {
  json out = about(row);
  for (auto const& [key, field] : levels)
    out[key] = values_of(row.points,
                         [&, field = field](history_point const& p) { return number(p.*field); });
  double const s = row.interval_s;
  out["served"] = values_of(row.points, [&](auto const& p) { return number(p.served / s); });
  out["blocked"] = values_of(row.points, [&](auto const& p) { return number(p.blocked_s / s); });
  return out;
}

json op_json(op_row const& row) {
  json out = about(row);
  json& rates = out["done"] = json::array();
  for (double v : row.done) rates.push_back(number(v / row.interval_s));
  return out;
}

namespace {

/// A page of rows. `read_row(number, fine, job)`: one as JSON, or nothing.
template <class Past, class Read>
json answer_rows(Past const* past, json const& request, Read const& read_row) {
  if (past == nullptr) throw sluice_error("this daemon keeps no history");
  auto const job = local::text_if(request, "job");
  auto const interval = local::whole_if(request, "interval", 1, 10).value_or(10);
  if (interval != 1 && interval != 10) throw usage_error("\"interval\" is 1 or 10");
  auto const from = local::whole_if(request, "from", 0, 1'000'000).value_or(0);
  json answer = {{"interval_s", interval},
                 {"left_out", past->left_out()},
                 {"rows", json::array()},
                 {"next", nullptr}};
  std::size_t bytes = 0;
  for (auto i = static_cast<std::size_t>(from); i < past->size(); ++i) {
    json one = read_row(i, interval == 1, job);
    if (one.is_null()) continue;
    std::size_t const size = one.dump(-1, ' ', false, json::error_handler_t::replace).size() + 1;
    if (bytes > 0 && bytes + size > page_bytes) {
      answer["next"] = i;
      break;
    }
    bytes += size;
    answer["rows"].push_back(std::move(one));
  }
  return answer;
}

using wanted_job = std::optional<std::string>;

}  // namespace

json answer_history(history const* past, history_reader const& who, json const& request) {
  history_row row;
  return answer_rows(past, request, [&](std::size_t i, bool fine, wanted_job const& job) -> json {
    if (!past->read(i, who, fine, true, row)) return nullptr;
    // The supplies go with it: what there was to have.
    bool const of_supply = row.name.job.empty() && row.name.qos_class.empty();
    if (job && !of_supply && !is_named(row.name, *job)) return nullptr;
    return amounts_json(row);
  });
}

json answer_op_history(op_history const* past, history_reader const& who, json const& request) {
  op_row row;
  return answer_rows(past, request, [&](std::size_t i, bool fine, wanted_job const& job) -> json {
    if (!past->read(i, who, fine, row) || (job && !is_named(row.name, *job))) return nullptr;
    return amounts_json(row);
  });
}

}  // namespace sluice::runtime
