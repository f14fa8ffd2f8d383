// SPDX-License-Identifier: Apache-2.0
#include "verbs/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/suggest.h"
#include "local/request.h"
#include "policy/change.h"
#include "policy/limit.h"
#include "policy/milli_rate.h"
#include "policy/supply.h"
#include "verbs/views/rows.h"

namespace sluice::verbs {

namespace {

using nlohmann::json;

constexpr char const* withdrawn = "policy";  // the value that undoes what was set by hand
constexpr std::int64_t longest_s = 366 * 86400;

override_mark mark_of(local::peer const& who, json const& request) {
  override_mark m;
  m.by_owner = !local::is_operator(who);
  if (auto const for_s = local::whole_if(request, "for_s", 1, longest_s))
    m = ends_after(m, static_cast<double>(*for_s), dated_now());
  return m;
}

/// What `metadata`, `metadata@scratch` or the name of a channel means in this job.
std::vector<settable> meant_by(role const& r, std::size_t job, std::string const& name) {
  auto const all = r.settables(job);
  std::vector<settable> by_name, by_resource;
  std::vector<std::string> known;
  for (auto const& s : all) {
    known.push_back(s.name);
    if (s.name == name) by_name.push_back(s);
    if (!s.resource.empty() && s.resource == name) by_resource.push_back(s);
  }
  if (!by_name.empty()) return by_name;
  if (!by_resource.empty()) return by_resource;
  throw usage_error(fmt::format("job {} has no limit \"{}\"{}{}", r.name_of(job).name,
                                name.substr(0, 80), did_you_mean(name, known), it_has(known)));
}

std::string assignment_of(settable const& s, rate r) {
  return fmt::format("{}={}", s.name, r == unbounded ? "unlimited" : policy::bound_text(r, s.unit));
}

rate rate_for(settable const& s, std::string const& amount, std::string const& where) {
  return policy::milli_per_second(policy::parse_milli_rate(amount, where, s.unit, "this limit"));
}

struct changed {
  std::string was, now;
};

void add(std::string& to, std::string const& text) { to += (to.empty() ? "" : ", ") + text; }

/// All of what the name means, or nothing.
changed set_limits(role& r, std::size_t job, std::string const& name, std::string const& amount,
                   override_mark const& mark) {
  r.check_change(job, role::change::limit);
  changed out;
  override_book all = r.overrides();
  std::string const where = fmt::format("set {}={}", name, amount.substr(0, 80));
  job_name const of = r.name_of(job);
  for (auto const& s : meant_by(r, job, name)) {
    rate const value = rate_for(s, amount, where);
    if (mark.by_owner && s.owner_most && value > *s.owner_most)
      throw usage_error(fmt::format("{}: above what the policy allows this job ({})", where,
                                    assignment_of(s, *s.owner_most)));
    limit_override item;
    static_cast<override_mark&>(item) = mark;
    item.channel = s.name;
    item.value = value;
    all.set_limit(of.key, of.uid, of.name, std::move(item));
    add(out.was, assignment_of(s, s.now));
    add(out.now, assignment_of(s, value));
  }
  r.overrides() = std::move(all);
  return out;
}

/// Of what the name means, all that was set by hand.
changed withdraw_limits(role& r, std::size_t job, std::string const& name, bool by_owner) {
  r.check_change(job, role::change::limit);
  changed out;
  override_book all = r.overrides();
  job_name const of = r.name_of(job);
  for (auto const& s : meant_by(r, job, name)) {
    if (!all.withdraw_limit(of.key, s.name, by_owner)) continue;
    add(out.was, assignment_of(s, s.now));
    add(out.now, fmt::format("{}={}", s.name, withdrawn));
  }
  if (out.now.empty())
    throw usage_error(fmt::format("{} of job {} follows the policy already", name, of.name));
  r.overrides() = std::move(all);
  return out;
}

changed withdraw_class(role& r, std::size_t job, bool by_owner) {
  if (by_owner) throw usage_error("only an operator may change the class of a job");
  r.check_change(job, role::change::qos_class);
  job_name const of = r.name_of(job);
  changed const out = {"class=" + r.look_at(job).qos_class, fmt::format("class={}", withdrawn)};
  if (!r.overrides().withdraw_class(of.key))
    throw usage_error(fmt::format("class of job {} follows the policy already", of.name));
  return out;
}

/// What makes a job wait that nobody paused; empty: nothing does.
std::string at_zero(role const& r, std::size_t job) {
  std::vector<std::string> names;
  for (auto const& s : r.settables(job))
    if (s.now == 0) names.push_back(s.name);
  if (names.empty()) return {};
  return fmt::format("; {} {}: set {} to a rate", fmt::join(names, ", "),
                     names.size() == 1 ? "is 0" : "are 0", names.size() == 1 ? "it" : "them");
}

changed set_class(role& r, std::size_t job, std::string const& name, override_mark const& mark) {
  if (mark.by_owner) throw usage_error("only an operator may change the class of a job");
  r.check_change(job, role::change::qos_class);
  policy_view const in_force = r.policy();
  std::vector<std::string> known;
  if (in_force.site != nullptr)
    for (auto const& c : in_force.site->classes) known.push_back(c.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw usage_error(fmt::format("the policy has no class \"{}\"{}{}", name.substr(0, 80),
                                  did_you_mean(name, known), it_has(known)));
  job_name const of = r.name_of(job);
  changed const out = {"class=" + r.look_at(job).qos_class, "class=" + name};
  class_override item;
  static_cast<override_mark&>(item) = mark;
  item.qos_class = name;
  r.overrides().set_class(of.key, of.uid, of.name, std::move(item));
  return out;
}

bool has_class(role const& r, std::string const& name) {
  policy_view const in_force = r.policy();
  return in_force.site != nullptr &&
         std::any_of(in_force.site->classes.begin(), in_force.site->classes.end(),
                     [&](auto const& c) { return c.name == name; });
}

/// A class may have the name of the word: then it is the class.
changed assign(role& r, std::size_t job, std::string const& name, std::string const& value,
               override_mark const& mark) {
  bool const is_class = name == "class";
  if (value != withdrawn || (is_class && has_class(r, value)))
    return is_class ? set_class(r, job, value, mark) : set_limits(r, job, name, value, mark);
  if (mark.until_s != 0)
    throw usage_error("what follows the policy again does so for good: leave --for away");
  return is_class ? withdraw_class(r, job, mark.by_owner)
                  : withdraw_limits(r, job, name, mark.by_owner);
}

json put_in_force(role& r, std::size_t job, json answer) {
  r.overrides_changed(job);
  return answer;
}

}  // namespace

json set_job(role& r, local::peer const& who, json const& request) {
  std::size_t const job = find_job(r, who, local::text_of(request, "job"));
  std::string const assignment = local::text_of(request, "assignment");
  auto const equals = assignment.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw usage_error(fmt::format("set: \"{}\": wanted NAME=RATE, class=CLASS or NAME=policy",
                                  assignment.substr(0, 80)));
  std::string const name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  override_mark const mark = mark_of(who, request);
  changed const done = assign(r, job, name, value, mark);
  return put_in_force(r, job,
                      {{"job", r.name_of(job).name},
                       {"was", done.was},
                       {"now", done.now},
                       {"until", until_json(mark.until_s)}});
}

json pause_job(role& r, local::peer const& who, json const& request) {
  std::size_t const job = find_job(r, who, local::text_of(request, "job"));
  r.check_change(job, role::change::pause);
  override_mark const mark = mark_of(who, request);
  job_name const of = r.name_of(job);
  r.overrides().pause(of.key, of.uid, of.name, mark);
  return put_in_force(r, job,
                      {{"job", of.name}, {"state", "paused"}, {"until", until_json(mark.until_s)}});
}

json resume_job(role& r, local::peer const& who, json const& request) {
  std::size_t const job = find_job(r, who, local::text_of(request, "job"));
  r.check_change(job, role::change::pause);
  job_name const of = r.name_of(job);
  if (!r.overrides().resume(of.key, !local::is_operator(who)))
    throw usage_error(fmt::format("job {} is not paused{}", of.name, at_zero(r, job)));
  return put_in_force(r, job, {{"job", of.name}, {"state", "running"}});
}

}  // namespace sluice::verbs
