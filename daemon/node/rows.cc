// SPDX-License-Identifier: Apache-2.0
#include "node/rows.h"
#include "control/user_names.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_escaped = 16;

json number_or_null(rate r) { return r == policies::unbounded ? json(nullptr) : json(tokens(r)); }

json until_of(override_item const& i) { return i.until_s == 0 ? json(nullptr) : json(i.until_s); }

json override_row(job_overrides const* o) {
  if (o == nullptr || o->is_empty()) return nullptr;
  json out = {{"limits", json::array()}};
  for (auto const& [channel, item] : o->limits)
    out["limits"].push_back(
        {{"channel", channel}, {"limit", tokens(item.limit)}, {"until", until_of(item)}});
  if (o->qos_class)
    out["class"] = {{"class", o->qos_class->qos_class}, {"until", until_of(*o->qos_class)}};
  if (o->pause) out["pause"] = {{"until", until_of(*o->pause)}};
  return out;
}

}  // namespace

json stream_rows(state const& s, job const& j) {
  json rows = json::array();
  auto const* const changed = s.overrides.find(j.folder);
  for (auto const& stream : j.streams) {
    supply_slot const& slot = s.site.supplies()[stream.supply];
    share_claim const c = claim_of(j, stream, s.site.site(), slot, changed, s.has_parent());
    bool const blocked = stream.last.blocked_ppm != 0;
    rows.push_back({{"supply", slot.of.name()},
                    {"demand", blocked ? json(nullptr) : json(tokens(stream.last.served) * 1.02)},
                    {"grant", tokens(stream.share)},
                    {"served", tokens(stream.last.served)},
                    {"waiting", tokens(stream.last.waiting)},
                    {"waiters", stream.last.waiters},
                    {"blocked", stream.last.blocked_ppm / 1e6},
                    {"limit", number_or_null(c.policy.limit)},
                    {"reservation", tokens(c.policy.reservation)},
                    {"weight", c.policy.weight / 1000.0},
                    {"would_delay", tokens(stream.would_delay)}});
  }
  return rows;
}

json job_row(state const& s, job const& j) {
  auto const* const changed = s.overrides.find(j.folder);
  json escaped = json::array();
  for (auto const& e : j.escapes)
    if (escaped.size() < most_escaped)
      escaped.push_back({{"pid", e.pid}, {"name", e.name}, {"why", e.why}});
  bool const paused = changed != nullptr && changed->pause;
  return {{"job", j.record.name},
          {"user", control::user_name(j.record.uid)},
          {"uid", j.record.uid},
          {"class", class_in_force(j, changed)},
          {"nodes", 1},
          {"processes", j.processes},
          {"foreign", j.foreign},
          {"escaped", escaped},
          {"not_governed", not_governed(s.site, j)},
          {"state", paused ? "paused" : "running"},
          {"override", override_row(changed)},
          {"streams", stream_rows(s, j)}};
}

json job_rows(state const& s, local::peer const& who) {
  json rows = json::array();
  for (auto const& j : s.jobs.all())
    if (may_see(who, *j)) rows.push_back(job_row(s, *j));
  return rows;
}

json supply_rows(state const& s) {
  json rows = json::array();
  for (unsigned i = 0; i < s.site.supplies().size(); ++i) {
    supply_slot const& slot = s.site.supplies()[i];
    if (slot.of.capacity == 0) continue;
    rate served = 0;
    bool unbounded = false;
    for (auto const& j : s.jobs.all())
      for (auto const& stream : j->streams) {
        if (stream.supply != i) continue;
        served += stream.last.served;
        unbounded = unbounded || stream.last.blocked_ppm != 0;
      }
    bool const known = i < s.rates.standing().size();
    supply_standing const standing = known ? s.rates.standing()[i] : supply_standing{};
    rows.push_back({{"supply", slot.of.name()},
                    {"capacity", tokens(slot.of.capacity)},
                    {"budget", tokens(standing.usable)},
                    {"granted", tokens(standing.granted)},
                    {"served", tokens(served)},
                    {"demand", unbounded ? json(nullptr) : json(tokens(served) * 1.02)}});
  }
  return rows;
}

json node_row(state const& s) {
  json served = json::object(), granted = json::object();
  for (auto const& row : supply_rows(s)) {
    served[row["supply"].get<std::string>()] = row["served"];
    granted[row["supply"].get<std::string>()] = row["granted"];
  }
  return {{"name", s.config.name},       {"role", "node"},   {"state", "live"},   {"age_s", 0.0},
          {"jobs", s.jobs.all().size()}, {"served", served}, {"granted", granted}};
}

}  // namespace sluice::node
