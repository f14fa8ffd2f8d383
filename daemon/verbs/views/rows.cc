// SPDX-License-Identifier: Apache-2.0
#include "verbs/views/rows.h"

#include <nlohmann/json.hpp>

#include "verbs/views/steered.h"

namespace sluice::verbs {

namespace {

using nlohmann::json;

constexpr std::size_t most_escapes = 32;

constexpr double tokens(rate r) { return static_cast<double>(r) / 1000; }
json tokens_or_null(rate r) { return r == unbounded ? json(nullptr) : json(tokens(r)); }

json escape_rows(std::vector<escape_view> const& escapes) {
  json rows = json::array();
  for (auto const& e : escapes)
    if (rows.size() < most_escapes)
      rows.push_back({{"pid", e.pid}, {"name", e.name}, {"why", e.why}});
  return rows;
}

json override_row(job_overrides const* o) {
  if (o == nullptr || o->is_empty()) return nullptr;
  json out = {{"limits", json::array()}};
  for (auto const& l : o->limits)
    out["limits"].push_back(
        {{"channel", l.channel}, {"limit", tokens(l.value)}, {"until", until_json(l.until_s)}});
  if (o->qos) out["class"] = {{"class", o->qos->qos_class}, {"until", until_json(o->qos->until_s)}};
  if (o->pause) out["pause"] = {{"until", until_json(o->pause->until_s)}};
  return out;
}

}  // namespace

json until_json(double until_s) { return until_s == 0 ? json(nullptr) : json(until_s); }

json stream_rows(job_view const& job) {
  json rows = json::array();
  for (auto const& s : job.streams)
    rows.push_back({{"supply", s.supply},
                    {"demand", s.is_blocked ? json() : json(tokens(s.served) * demand_factor)},
                    {"grant", tokens_or_null(s.granted)},
                    {"served", tokens(s.served)},
                    {"waiting", tokens(s.waiting)},
                    {"waiters", s.waiters},
                    {"blocked", s.blocked_ppm / 1e6},
                    {"limit", tokens_or_null(s.limit)},
                    {"reservation", tokens(s.reservation)},
                    {"weight", s.weight / 1000.0},
                    {"would_delay", tokens(s.would_delay)},
                    {"why", s.steered ? json(steered_in_words(*s.steered, s.unit)) : json()}});
  return rows;
}

json job_row(job_view const& j, std::string const& user, job_overrides const* changed) {
  bool const is_paused = changed != nullptr && changed->pause;
  return {{"job", j.name},
          {"user", user},
          {"uid", j.uid},
          {"class", j.qos_class},
          {"nodes", j.nodes},
          {"processes", j.processes},
          {"foreign", j.foreign},
          {"escaped", escape_rows(j.escapes)},
          {"not_governed", j.not_governed},
          {"state", is_paused      ? "paused"
                    : j.is_watched ? "watched"
                                   : "running"},
          {"override", override_row(changed)},
          {"streams", stream_rows(j)}};
}

json supply_row(supply_view const& s) {
  return {{"supply", s.name},
          {"capacity", tokens(s.capacity)},
          {"budget", tokens(s.budget)},
          {"granted", tokens(s.granted)},
          {"served", tokens(s.served)},
          {"demand", s.demand ? json(tokens(*s.demand) * demand_factor) : json()},
          {"drift", s.drift ? drift_row(*s.drift) : json()},
          {"steered", s.steered ? steered_row(*s.steered) : json()},
          {"why", s.steered ? json(steered_in_words(*s.steered, s.unit)) : json()}};
}

json node_row(node_view const& n) {
  json served = json::object(), granted = json::object();
  for (auto const& a : n.supplies) {
    served[a.supply] = tokens(a.served);
    granted[a.supply] = tokens(a.granted);
  }
  return {{"name", n.name}, {"role", n.role},   {"state", n.state},  {"age_s", n.age_s},
          {"jobs", n.jobs}, {"served", served}, {"granted", granted}};
}

}  // namespace sluice::verbs
