// SPDX-License-Identifier: Apache-2.0
#include "cluster/change_job.h"
#include "policy/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cluster/clock.h"
#include "cluster/rows.h"
#include "control/user_names.h"
#include "core/units.h"
#include "local/request.h"
#include "policy/error.h"
#include "policy/suggest.h"

namespace sluice::cluster {

namespace {

using nlohmann::json;

constexpr std::int64_t longest_s = 365 * 86400;

/// The job a change is meant for. One that its node has not named yet cannot be remembered.
std::uint32_t job_to_change(controller& c, local::peer const& who, json const& request) {
  if (c.is_relay())
    throw usage_error("this is a relay: ask the cluster, which decides for all nodes");
  std::uint32_t const number = find_job(c.decisions(), who, local::text_of(request, "job"));
  if (c.decisions().who().jobs[number].name.empty())
    throw sluice_error("its node has not told who this job is; try again in a moment");
  return number;
}

std::int64_t until_of(json const& request) {
  auto const for_s = local::whole_if(request, "for_s", 1, longest_s);
  return for_s ? deadline_s(*for_s) : 0;
}

json until_json(std::int64_t until_s) { return until_s == 0 ? json(nullptr) : json(until_s); }

job_override::mark mark_of(local::peer const& who, json const& request) {
  return {true, !is_operator(who), until_of(request)};
}

/// What the class alone says, without anybody's override.
terms class_terms(brain const& b, job const& j, std::uint32_t supply) {
  return b.policy().classes[b.policy().class_of(j.class_key)].by_supply[supply];
}

/// The supplies that "metadata" or "metadata@scratch" names.
std::vector<std::uint32_t> supplies_named(plan const& p, std::string const& name) {
  std::vector<std::uint32_t> found;
  std::vector<std::string> known;
  for (std::uint32_t s = 0; s < p.supplies.size(); ++s) {
    supply_row const& row = p.supplies[s];
    if (row.capacity == 0) continue;
    known.push_back(row.name);
    if (name == row.name || name == row.resource) found.push_back(s);
  }
  if (!found.empty()) return found;
  if (known.empty()) throw usage_error("the policy shares nothing yet: there is nothing to set");
  std::string all;
  for (std::string const& k : known) all += (all.empty() ? "" : ", ") + k;
  throw usage_error(fmt::format("\"{}\" is not shared here; there is {}", name.substr(0, 80), all));
}

rate rate_of(std::string const& text, bool counts_bytes, std::string const& supply) {
  auto const r = core::parse_rate(text);
  if (!r.ok()) throw usage_error(fmt::format("rate \"{}\": {}", text.substr(0, 80), r.reason));
  if (r.value.is_bytes && !counts_bytes)
    throw usage_error(fmt::format("{} counts operations, \"{}\" is bytes", supply, text));
  core::u128 const milli = core::u128(r.value.units) * 1000 * core::second_ns / r.value.period_ns;
  if (milli >= unbounded) throw usage_error(fmt::format("rate \"{}\": too large", text));
  return static_cast<rate>(milli);
}

json set_class(controller& c, local::peer const& who, std::uint32_t number, std::string const& name,
               json const& request) {
  if (!is_operator(who))
    throw sluice_error("only root and the daemon's user may change the class of a job");
  job const& j = c.decisions().who().jobs[number];
  auto const& classes = c.in_force().site.classes;
  if (std::none_of(classes.begin(), classes.end(), [&](auto& q) { return q.name == name; }))
    throw usage_error(fmt::format("no class \"{}\" in the policy", name.substr(0, 40)));
  std::string const was = c.decisions().policy().classes[j.row].name;
  job_override& o = c.by_hand().edit(j.key, j.uid, j.name);
  o.qos = mark_of(who, request);
  o.qos_class = name;
  o.class_key = wire::class_key(name);
  c.overrides_changed();
  return {{"job", name_of(j)}, {"was", was}, {"now", name}, {"until", until_json(o.qos.until_s)}};
}

json set_limit(controller& c, local::peer const& who, std::uint32_t number, std::string const& name,
               std::string const& text, json const& request) {
  brain& b = c.decisions();
  job const& j = b.who().jobs[number];
  std::string was, now;
  job_override::mark const mark = mark_of(who, request);
  std::vector<job_override::limit_row> wanted;
  for (std::uint32_t s : supplies_named(b.policy(), name)) {
    supply_row const& row = b.policy().supplies[s];
    job_override::limit_row l;
    static_cast<job_override::mark&>(l) = mark;
    l.supply = row.key;
    l.name = row.name;
    l.value = rate_of(text, row.counts_bytes, row.name);
    rate const before = b.who().deal(j, s).limit;
    job_override::limit_row const* present = j.forced ? j.forced->limit_of(row.key) : nullptr;
    rate const own_most =
        present && !present->by_owner ? present->value : class_terms(b, j, s).limit;
    if (mark.by_owner && l.value > own_most)
      throw sluice_error(
          fmt::format("{} of this job is limited to {}: only an operator may raise it", row.name,
                      policy::bound_text(own_most, row.counts_bytes)));
    if (mark.by_owner && present && !present->by_owner)
      throw sluice_error(fmt::format("{} of this job was set by an operator", row.name));
    was += (was.empty() ? "" : ", ") + policy::bound_text(before, row.counts_bytes);
    now += (now.empty() ? "" : ", ") + policy::bound_text(l.value, row.counts_bytes);
    wanted.push_back(l);
  }
  job_override& o = c.by_hand().edit(j.key, j.uid, j.name);
  for (auto const& l : wanted) {
    std::erase_if(o.limits, [&](auto const& x) { return x.supply == l.supply; });
    o.limits.push_back(l);
  }
  c.overrides_changed();
  return {{"job", name_of(j)}, {"was", was}, {"now", now}, {"until", until_json(mark.until_s)}};
}

}  // namespace

std::uint32_t find_job(brain const& b, local::peer const& who, std::string const& name) {
  std::size_t const at = name.find('@');
  std::string const owner = at == std::string::npos ? "" : name.substr(0, at);
  std::string const own_name = at == std::string::npos ? name : name.substr(at + 1);
  std::vector<std::uint32_t> found;
  roster const& r = b.who();
  for (std::uint32_t j = 0; j < r.jobs.size(); ++j) {
    if (!may_see(who, r.jobs[j]) || name_of(r.jobs[j]) != own_name) continue;
    std::uint32_t const uid = r.jobs[j].uid;
    if (owner.empty() || owner == std::to_string(uid) || owner == control::user_name(uid))
      found.push_back(j);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) throw usage_error(fmt::format("no job \"{}\" here", name.substr(0, 120)));
  std::string all;
  for (std::uint32_t j : found)
    all += fmt::format("{}{}@{}", all.empty() ? "" : ", ", control::user_name(r.jobs[j].uid),
                       own_name);
  throw usage_error(fmt::format("more than one job \"{}\": say which of {}", own_name, all));
}

json set_job(controller& c, local::peer const& who, json const& request) {
  std::uint32_t const number = job_to_change(c, who, request);
  std::string const assignment = local::text_of(request, "assignment");
  std::size_t const equals = assignment.find('=');
  if (equals == std::string::npos)
    throw usage_error(
        fmt::format("\"{}\": use metadata=20k/s, metadata@scratch=20k/s or class=NAME",
                    assignment.substr(0, 80)));
  std::string const name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  if (name == "class") return set_class(c, who, number, value, request);
  return set_limit(c, who, number, name, value, request);
}

json pause_job(controller& c, local::peer const& who, json const& request) {
  job const& j = c.decisions().who().jobs[job_to_change(c, who, request)];
  job_override& o = c.by_hand().edit(j.key, j.uid, j.name);
  if (o.pause.set && !o.pause.by_owner && !is_operator(who))
    throw sluice_error("an operator paused this job");
  o.pause = mark_of(who, request);
  std::int64_t const until = o.pause.until_s;
  c.overrides_changed();
  return {{"job", name_of(j)}, {"state", "paused"}, {"until", until_json(until)}};
}

json resume_job(controller& c, local::peer const& who, json const& request) {
  job const& j = c.decisions().who().jobs[job_to_change(c, who, request)];
  if (j.forced == nullptr || !j.forced->pause.set)
    throw usage_error(fmt::format("job \"{}\" is not paused here", name_of(j)));
  if (!j.forced->pause.by_owner && !is_operator(who))
    throw sluice_error("an operator paused this job: only an operator may resume it");
  c.by_hand().edit(j.key, j.uid, j.name).pause = {};
  c.overrides_changed();
  return {{"job", name_of(j)}, {"state", "running"}};
}

}  // namespace sluice::cluster
