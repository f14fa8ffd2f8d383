// SPDX-License-Identifier: Apache-2.0
#include "node/node_role.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "local/request.h"
#include "node/clock.h"
#include "node/job_limits.h"
#include "node/own_verbs.h"
#include "segment/run_dir.h"
#include "segment/small_look.h"
#include "verbs/serve.h"

namespace sluice::node {

namespace {

using nlohmann::json;

}  // namespace

std::optional<verbs::parent_view> node_role::parent() const {
  if (!s_.has_parent()) return std::nullopt;
  return verbs::parent_view{s_.parent->address(), s_.parent->name(),
                            s_.parent->is_heard(boot_ns())};
}

/// Of journals there may be hundreds, and all that is known of one takes a while to read.
void node_role::add_to_hello(json& answer, local::peer const& who, json const& request) const {
  answer["journal"] = s_.journals.row(who.uid);
  if (!local::flag_of(request, "journals", false)) return;
  local::page page(answer, request);
  for (uid_t const user : s_.journals.users())
    if ((local::is_operator(who) || user == who.uid) &&
        !page.put("journals", [&] { return s_.journals.full_row(user); }))
      return;
}

verbs::job_name node_role::name_of(std::size_t number) const {
  job const& j = at(number);
  return {j.record.uid, j.record.name, j.key};
}

verbs::stream_view node_role::view_of(job const& j, stream const& of) const {
  supply_slot const& slot = s_.site.supplies()[of.supply];
  policies::claim const claim =
      claim_of(j, of, s_.site.site(), slot, s_.overrides.find(j.key), s_.has_parent()).policy;
  figures const now = j.told_of(of);
  verbs::stream_view v;
  v.supply = slot.of.name();
  v.unit = of.unit;
  v.served = now.served;
  v.granted = of.share >= unlimited(of.unit) ? verbs::unbounded : of.share;
  v.waiting = now.waiting;
  v.waiters = now.waiters;
  v.blocked_ppm = now.blocked_ppm;
  v.is_blocked = now.blocked_ppm != 0;
  v.limit = claim.limit;
  v.reservation = claim.reservation;
  v.weight = claim.weight;
  v.would_delay = of.beyond();
  v.capacity = s_.steered.in_force(of.supply);
  v.steered = s_.steered.view(of.supply);
  v.drift = s_.steered.drift(of.supply);
  return v;
}

verbs::stream_view node_role::view_of(background::keeper::part const& p) {
  verbs::stream_view v;
  v.supply = p.channel;
  v.unit = core::unit_kind::bytes;
  v.served = p.moved;
  v.granted = p.limit;
  v.is_blocked = p.waits;
  return v;
}

verbs::job_view node_role::look_at(std::size_t number) const {
  job const& j = at(number);
  verbs::job_view v;
  v.uid = j.record.uid;
  v.name = j.record.name;
  v.qos_class = class_in_force(j, s_.overrides.find(j.key));
  v.processes = j.processes;
  v.foreign = j.foreign;
  v.foreign_found = j.foreign_found;
  for (auto const& e : j.escapes) v.escapes.push_back({e.pid, e.name, e.why});
  v.is_watched = j.record.monitor;
  v.not_governed = not_governed(s_.site, j);
  for (auto const& of : j.streams) v.streams.push_back(view_of(j, of));
  for (auto const& p : s_.held_back.parts(j)) v.streams.push_back(view_of(p));
  return v;
}

std::vector<std::string> node_role::deciders() const {
  if (!s_.has_parent()) return {"This node has no parent and divides the whole capacity itself."};
  std::int64_t const at_ns = boot_ns();
  if (s_.lease.child.is_orphan(at_ns))
    return {fmt::format("Nobody answers at {}: the node divides its own safe share.",
                        s_.parent->address())};
  if (s_.lease.child.is_silent(at_ns))
    return {fmt::format("The parent {} is silent: its last grant runs out.", s_.parent->name())};
  return {fmt::format("The parent {} decides; the node keeps to its grant.", s_.parent->name())};
}

verbs::job_details node_role::details_of(std::size_t number) const {
  job const& j = at(number);
  verbs::job_details d;
  d.deciders = deciders();
  d.has_policy = s_.site.is_set();
  d.is_enforced = !d.has_policy || s_.site.site().control.enforce;
  for (auto const& f : j.fixed)
    d.fixed.push_back({f.of.name, f.of.unit, rate_of_q40(f.of.unit, f.in_force_q40), f.of.is_own});
  d.left_out = j.record.left_out;
  return d;
}

void node_role::add_small(job const& j, json& answer) const {
  json small = segment::small_json(j.memory(), j.files(s_.config.run_dir), j.processes != 0);
  if (!small.is_null()) answer["small"] = std::move(small);
}

void node_role::add_to_explain(std::size_t number, json& answer) const {
  job const& j = at(number);
  s_.jobs.look(j, segment::whole);
  bool const is_read = s_.loop.figures.spend(j.owner, [&] { add_small(j, answer); });
  if (!is_read)
    answer["lines"].push_back(
        "What it did of small I/O is not read now: its user's jobs keep the node busy.");
  if (json rows = s_.held_back.rows(at(number)); !rows.is_null())
    answer["background"] = std::move(rows);
  if (json rows = s_.promised.rows(at(number)); !rows.is_null()) {
    answer["requests"] = std::move(rows);
    for (auto& line : s_.promised.sentences(at(number))) answer["lines"].push_back(std::move(line));
  }
}

std::vector<verbs::supply_view> node_role::supplies() const {
  std::vector<verbs::supply_view> out;
  for (unsigned i = 0; i < s_.site.supplies().size(); ++i) {
    supply_slot const& slot = s_.site.supplies()[i];
    if (slot.of.capacity == 0) continue;
    verbs::supply_view v;
    v.name = slot.of.name();
    v.capacity = s_.steered.in_force(i);
    v.unit = slot.of.unit;
    v.steered = s_.steered.view(i);
    v.drift = s_.steered.drift(i);
    bool is_blocked = false;
    for (auto const& j : s_.jobs.all())
      for (auto const& of : j->streams) {
        if (of.supply != i) continue;
        v.served += of.last.served;
        is_blocked = is_blocked || j->told_of(of).blocked_ppm != 0;
      }
    if (!is_blocked) v.demand = v.served;
    if (i < s_.rates.standing().size()) {
      v.budget = s_.rates.standing()[i].usable;
      v.granted = s_.rates.standing()[i].granted;
    }
    out.push_back(std::move(v));
  }
  return out;
}

std::optional<verbs::node_view> node_role::node(std::size_t) const {
  verbs::node_view v = {s_.config.name, "node", "live", 0, s_.jobs.all().size(), {}};
  for (auto const& s : supplies()) v.supplies.push_back({s.name, s.served, s.granted});
  return v;
}

std::vector<std::string> node_role::warnings_of(policy::site const& next) const {
  return absent(next.targets, s_.jobs.places().files());
}

void node_role::check_change(std::size_t number, change what) const {
  job const& j = at(number);
  if (what == change::pause && (j.record.monitor || (j.streams.empty() && j.fixed.empty())))
    throw usage_error(fmt::format("job {} has no limits: it can only be watched", j.record.name));
  if (what == change::qos_class && s_.has_parent())
    throw usage_error("the class of a job is one for all its nodes: set it at the cluster");
}

std::vector<verbs::settable> node_role::settables(std::size_t number) const {
  job const& j = at(number);
  auto const* const changed = s_.overrides.find(j.key);
  std::vector<verbs::settable> out;
  for (auto const& f : j.fixed) {
    rate const most = rate_of_q40(f.of.unit, f.of.rate_q40);
    auto const* const l = changed == nullptr ? nullptr : changed->limit_of(f.of.name);
    verbs::settable s = {f.of.name, "", f.of.unit, l ? l->value : most, {}};
    if (!f.of.is_own) s.owner_most = most;
    out.push_back(std::move(s));
  }
  for (auto const& of : j.streams) {
    supply_slot const& slot = s_.site.supplies()[of.supply];
    auto const limit = [&](verbs::job_overrides const* by) {
      return claim_of(j, of, s_.site.site(), slot, by, s_.has_parent()).policy.limit;
    };
    out.push_back({slot.of.name(), slot.of.resource, of.unit, limit(changed), limit(nullptr)});
  }
  return out;
}

void node_role::overrides_changed(std::size_t number) {
  at(number).is_announced = false;
  s_.has_news = true;
  s_.kept.changed();  // it tells what comes of that
  s_.enforce(now());
  if (!s_.jobs.settle(at(number)))
    doubt_ = "the memory of the job does not come now: what was changed is in force when it does";
}

std::string node_role::doubt_of_changes() { return std::exchange(doubt_, {}); }

verbs::policy_view node_role::policy() const {
  return {s_.site.is_set() ? &s_.site.site() : nullptr, &s_.site.text(), s_.site.hash()};
}

void node_role::check_apply() const {
  if (s_.has_parent())
    throw usage_error(fmt::format("this node takes its policy from {}: apply it there",
                                  s_.config.parents.front()));
}

std::vector<std::string> node_role::use_policy(std::string const& text,
                                               runtime::policy_source const& source) {
  s_.use_policy(text, source, now());
  if (s_.config.policy.empty()) return {};
  return {fmt::format("at its next start this sluiced reads {} again", s_.config.policy)};
}

/// Where users see the cluster, its controller answers them; an operator sees this node.
std::optional<json> node_role::ask_above(local::peer const& who, verbs::verb which,
                                         json const& request) {
  bool const goes_above = s_.config.view == runtime::view_kind::cluster && s_.has_parent() &&
                          !local::is_operator(who) && verbs::is_from_afar(which);
  if (!goes_above) return std::nullopt;
  return s_.asked.ask(s_.parent->uplink(), who, request, now().mono_ns);
}

json node_role::serve_own(verbs::verb which, local::peer const& who, json const& request) {
  switch (which) {
    case verbs::verb::join:
      return join(s_, who, request);
    case verbs::verb::register_job:
      return register_job(s_, request);
    case verbs::verb::release_job:
      return release_job(s_, request);
    case verbs::verb::step:
      return begin_step(s_, who, request);
    default: {
      // To a stranger a job is unknown, the scheduler's as any other.
      std::string const name = local::text_of(request, "job");
      auto const owner = local::is_operator(who) ? std::nullopt : std::optional(who.uid);
      job const* const scheduled = scheduled_job(s_, name, owner);
      return end_step(s_, scheduled != nullptr ? *scheduled : at(verbs::find_job(*this, who, name)),
                      request);
    }
  }
}

}  // namespace sluice::node
