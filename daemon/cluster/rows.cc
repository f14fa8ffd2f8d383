// SPDX-License-Identifier: Apache-2.0
#include "cluster/rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include "control/user_names.h"
#include "local/request.h"

namespace sluice::cluster {

namespace {

using nlohmann::json;

constexpr time_ns gone_after_ns = 10'000'000'000;
constexpr std::size_t page_bytes = 56'000;  // of a packet of 64 KiB; one row is far smaller

double tokens(rate r) { return static_cast<double>(r) / 1000; }
json tokens_or_null(rate r) { return r == unbounded ? json(nullptr) : json(tokens(r)); }
json until_of(job_override::mark const& m) {
  return m.until_s == 0 ? json(nullptr) : json(m.until_s);
}

json override_row(job_override const* o) {
  if (o == nullptr || o->is_empty()) return nullptr;
  json out = {{"limits", json::array()}};
  for (auto const& l : o->limits)
    out["limits"].push_back(
        {{"channel", l.name}, {"limit", tokens(l.value)}, {"until", until_of(l)}});
  if (o->qos.set) out["class"] = {{"class", o->qos_class}, {"until", until_of(o->qos)}};
  if (o->pause.set) out["pause"] = {{"until", until_of(o->pause)}};
  return out;
}

std::vector<tenancy> totals(roster const& r) {
  std::vector<tenancy> out(r.jobs.size());
  for (child const& c : r.children)
    for (tenancy const& t : c.jobs) {
      out[t.job].processes += t.processes;
      out[t.job].escaped += t.escaped;
    }
  return out;
}

/// 1.02: as the allocation takes it, see policies/README.md.
json demand_of(flow const& f) { return f.blocked ? json(nullptr) : json(tokens(f.served) * 1.02); }

}  // namespace

bool is_operator(local::peer const& who) {
  return !who.is_afar && (who.uid == 0 || who.uid == geteuid());
}

bool may_see(local::peer const& who, job const& j) {
  return j.key != 0 && j.uses > 0 && (is_operator(who) || (!j.name.empty() && j.uid == who.uid));
}

std::string name_of(job const& j) {
  return j.name.empty() ? fmt::format("job-{:016x}", j.key) : j.name;
}

char const* state_of(child const& c, time_ns now) {
  if (c.live) return "live";
  return now - c.heard_at < gone_after_ns ? "silent" : "gone";
}

json stream_rows(brain const& b, std::uint32_t number) {
  json rows = json::array();
  plan const& p = b.policy();
  for (std::uint32_t s = 0; s < b.who().width(); ++s) {
    flow const& f = b.who().at(number, s);
    if (f.streams == 0 || p.supplies[s].capacity == 0) continue;
    bool const would_delay = !p.enforce && f.served > f.granted;
    rows.push_back({{"supply", p.supplies[s].name},
                    {"demand", demand_of(f)},
                    {"grant", tokens(f.granted)},
                    {"served", tokens(f.served)},
                    {"waiting", tokens(f.waiting)},
                    {"waiters", f.waiters},
                    {"blocked", f.blocked_ppm / 1e6},
                    {"limit", tokens_or_null(f.deal.limit)},
                    {"reservation", tokens(f.deal.reservation)},
                    {"weight", f.deal.weight / 1000.0},
                    {"would_delay", would_delay ? tokens(f.served - f.granted) : 0.0}});
  }
  return rows;
}

json job_row(brain const& b, std::uint32_t number, tenancy const& total) {
  roster const& r = b.who();
  job const& j = r.jobs[number];
  std::uint32_t nodes = 0;
  for (std::uint32_t s = 0; s < r.width(); ++s) nodes = std::max(nodes, r.at(number, s).nodes);
  json escaped = json::array();
  if (total.escaped > 0)
    escaped.push_back({{"pid", 0},
                       {"name", fmt::format("{} processes", total.escaped)},
                       {"why", "ask the daemon of the node"}});
  bool const paused = j.forced != nullptr && j.forced->pause.set;
  return {{"job", name_of(j)},
          {"user", control::user_name(j.uid)},
          {"uid", j.uid},
          {"class", b.policy().classes[j.row].name},
          {"nodes", nodes},
          {"processes", total.processes},
          {"escaped", escaped},
          {"state", paused ? "paused" : "running"},
          {"override", override_row(j.forced)},
          {"streams", stream_rows(b, number)}};
}

json child_row(brain const& b, std::uint32_t number, time_ns now) {
  child const& c = b.who().children[number];
  json served = json::object(), granted = json::object();
  std::vector<rate> sums(b.who().width(), 0);
  for (stream const& s : c.streams) sums[s.supply] += s.served;
  for (std::uint32_t s = 0; s < b.who().width(); ++s) {
    if (b.policy().supplies[s].capacity == 0) continue;
    served[b.policy().supplies[s].name] = tokens(c.live ? sums[s] : 0);
    granted[b.policy().supplies[s].name] = tokens(b.ledger().current(number, s, now));
  }
  return {{"name", c.name},
          {"role", c.is_relay ? "relay" : "node"},
          {"state", state_of(c, now)},
          {"age_s", c.heard_at == 0 ? 0.0 : static_cast<double>(now - c.heard_at) / 1e9},
          {"jobs", c.jobs.size()},
          {"served", served},
          {"granted", granted}};
}

json supply_rows(brain const& b, time_ns now) {
  json rows = json::array();
  for (std::uint32_t s = 0; s < b.last().supplies.size(); ++s) {
    supply_row const& row = b.policy().supplies[s];
    if (row.capacity == 0) continue;
    supply_state const& state = b.last().supplies[s];
    bool const is_unbounded = state.blocked_jobs > 0;
    rows.push_back({{"supply", row.name},
                    {"capacity", tokens(row.capacity)},
                    {"budget", tokens(b.ledger().budget(s, now))},
                    {"granted", tokens(state.granted)},
                    {"served", tokens(state.served)},
                    {"demand", is_unbounded ? json(nullptr) : json(tokens(state.demand) * 1.02)}});
  }
  return rows;
}

void put_rows(json& answer, json const& request, brain const& b, local::peer const& who,
              bool with_children, time_ns now) {
  auto const from =
      static_cast<std::size_t>(local::whole_if(request, "from", 0, 1'000'000'000).value_or(0));
  auto const most =
      static_cast<std::size_t>(local::whole_if(request, "most", 1, 1'000'000).value_or(1'000'000));
  roster const& r = b.who();
  answer["jobs"] = json::array();
  if (with_children) answer["nodes"] = json::array();
  answer["next"] = nullptr;
  std::vector<tenancy> const total = totals(r);
  std::size_t bytes = answer.dump().size(), at = 0, taken = 0;
  // False: the page is full.
  auto const put = [&](char const* key, auto const& make) {
    if (at++ < from) return true;
    json row = make();
    std::size_t const size = row.dump().size() + 1;
    if (taken == most || (taken > 0 && bytes + size > page_bytes)) {
      answer["next"] = at - 1;
      return false;
    }
    bytes += size;
    ++taken;
    answer[key].push_back(std::move(row));
    return true;
  };
  for (std::uint32_t j = 0; j < r.jobs.size(); ++j)
    if (may_see(who, r.jobs[j]) && !put("jobs", [&] { return job_row(b, j, total[j]); })) return;
  for (std::uint32_t c = 0; with_children && c < r.children.size(); ++c)
    if (!r.children[c].name.empty() && !put("nodes", [&] { return child_row(b, c, now); })) return;
}

}  // namespace sluice::cluster
