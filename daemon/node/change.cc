// SPDX-License-Identifier: Apache-2.0
#include "node/change.h"

#include <fmt/format.h>

#include <algorithm>

#include "local/request.h"
#include "node/clock.h"
#include "policy/error.h"
#include "policy/limit.h"
#include "policy/suggest.h"

namespace sluice::node {

namespace {

using nlohmann::json;

constexpr std::int64_t most_for_s = 366 * 24 * 3600;

override_item item_for(local::peer const& who, json const& request) {
  override_item i;
  i.by_operator = is_operator(who);
  if (auto const for_s = local::whole_if(request, "for_s", 1, most_for_s))
    i.until_s = deadline_s(*for_s);
  return i;
}

json until_of(override_item const& i) { return i.until_s == 0 ? json(nullptr) : json(i.until_s); }

/// A channel of a job that can be set.
struct settable {
  std::string name;
  unit_kind unit;
  rate now;
  std::optional<rate> owner_most;  // what its owner may set at most; none: anything
};

settable granted_channel(state const& s, job const& j, stream const& of) {
  supply_slot const& slot = s.site.supplies()[of.supply];
  auto const plain = claim_of(j, of, s.site.site(), slot, nullptr, s.has_parent());
  auto const in_force =
      claim_of(j, of, s.site.site(), slot, s.overrides.find(j.folder), s.has_parent());
  return {slot.of.name(), of.unit, in_force.policy.limit, plain.policy.limit};
}

settable fixed_channel_of(state const& s, job const& j, fixed_seat const& f) {
  rate const most = rate_of_q40(f.of.unit, f.of.rate_q40);
  settable out = {f.of.name, f.of.unit, most, std::nullopt};
  if (!f.of.is_own) out.owner_most = most;
  if (auto const* const o = s.overrides.find(j.folder))
    if (auto const at = o->limits.find(f.of.name); at != o->limits.end())
      out.now = at->second.limit;
  return out;
}

/// What `metadata`, `metadata@scratch` or the name of a channel means in this job.
std::vector<settable> meant_by(state const& s, job const& j, std::string const& name) {
  std::vector<settable> exact, by_resource;
  std::vector<std::string> known;
  for (auto const& f : j.fixed) {
    known.push_back(f.of.name);
    if (f.of.name == name) exact.push_back(fixed_channel_of(s, j, f));
  }
  for (auto const& of : j.streams) {
    supply_slot const& slot = s.site.supplies()[of.supply];
    known.push_back(slot.of.name());
    if (slot.of.name() == name) exact.push_back(granted_channel(s, j, of));
    if (slot.of.resource == name) by_resource.push_back(granted_channel(s, j, of));
  }
  if (!exact.empty()) return exact;
  if (!by_resource.empty()) return by_resource;
  std::string list;
  for (auto const& k : known) list += (list.empty() ? "" : ", ") + k;
  throw usage_error(fmt::format("job {} has no limit \"{}\"{} (it has: {})", j.record.name, name,
                                policy::did_you_mean(name, known), list.empty() ? "none" : list));
}

std::string text_of(settable const& c, rate r) {
  if (r == policies::unbounded) return fmt::format("{}=unlimited", c.name);
  return fmt::format("{}={}", c.name, policy::rate_text(c.unit, q40_of(c.unit, r)));
}

std::string set_limits(state& s, job& j, std::string const& name, std::string const& amount,
                       override_item item, std::string& was) {
  std::string now;
  override_book all = s.overrides;  // all of what the name means, or nothing
  for (auto const& c : meant_by(s, j, name)) {
    std::string const where = fmt::format("set {}={}", name, amount);
    policy::rate const r = policy::parse_amount(amount, where);
    if (!r.any_unit && r.unit != c.unit)
      throw usage_error(fmt::format("{}: this limit counts {}", where,
                                    c.unit == unit_kind::bytes
                                        ? "bytes, write it like 200MiB/s"
                                        : "operations, write it like 1000/s"));
    item.limit = policy::milli_per_second(r);
    if (!item.by_operator && c.owner_most && item.limit > *c.owner_most)
      throw usage_error(fmt::format("{}: above what the policy allows this job ({})", where,
                                    text_of(c, *c.owner_most)));
    all.limit(j.folder, c.name, item);
    was += (was.empty() ? "" : ", ") + text_of(c, c.now);
    now += (now.empty() ? "" : ", ") + text_of(c, item.limit);
  }
  s.overrides = std::move(all);
  return now;
}

std::string set_class(state& s, job const& j, std::string const& name, override_item item,
                      std::string& was) {
  if (!item.by_operator) throw usage_error("only an operator may change the class of a job");
  if (s.has_parent())
    throw usage_error("the class of a job is one for all its nodes: set it at the cluster");
  std::vector<std::string> known;
  for (auto const& c : s.site.site().classes) known.push_back(c.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw usage_error(
        fmt::format("the policy has no class \"{}\"{}", name, policy::did_you_mean(name, known)));
  was = "class=" + class_in_force(j, s.overrides.find(j.folder));
  item.qos_class = name;
  s.overrides.qos_class(j.folder, item);
  return "class=" + name;
}

void changed(state& s, job& j, local::peer const& who, std::string const& what) {
  s.services.log.info(
      "job changed",
      {{"job", j.record.name}, {"uid", j.record.uid}, {"what", what}, {"by_uid", who.uid}});
  j.is_announced = false;
  s.has_news = true;
  s.keep_overrides();
  s.enforce(now());
}

}  // namespace

json set_job(state& s, local::peer const& who, json const& request) {
  job& j = s.jobs.named(who, local::text_of(request, "job"));
  std::string const assignment = local::text_of(request, "assignment");
  auto const equals = assignment.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw usage_error(fmt::format("set: \"{}\": wanted NAME=RATE or class=CLASS", assignment));
  std::string const name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  override_item const item = item_for(who, request);
  std::string was;
  std::string const now = name == "class" ? set_class(s, j, value, item, was)
                                          : set_limits(s, j, name, value, item, was);
  changed(s, j, who, now);
  return {{"job", j.record.name}, {"was", was}, {"now", now}, {"until", until_of(item)}};
}

json pause_job(state& s, local::peer const& who, json const& request) {
  job& j = s.jobs.named(who, local::text_of(request, "job"));
  if (j.record.monitor || (j.streams.empty() && j.fixed.empty()))
    throw usage_error(fmt::format("job {} has no limits: it can only be watched", j.record.name));
  override_item const item = item_for(who, request);
  s.overrides.pause(j.folder, item);
  changed(s, j, who, "paused");
  return {{"job", j.record.name}, {"state", "paused"}, {"until", until_of(item)}};
}

json resume_job(state& s, local::peer const& who, json const& request) {
  job& j = s.jobs.named(who, local::text_of(request, "job"));
  if (!s.overrides.resume(j.folder, is_operator(who)))
    throw usage_error(fmt::format("job {} is not paused", j.record.name));
  changed(s, j, who, "resumed");
  return {{"job", j.record.name}, {"state", "running"}};
}

}  // namespace sluice::node
