// SPDX-License-Identifier: Apache-2.0
#include "node/verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "control/dashboard.h"
#include "control/history_rows.h"
#include "core/path_head.h"
#include "local/request.h"
#include "node/change.h"
#include "node/clock.h"
#include "node/explain.h"
#include "node/registry.h"
#include "node/rows.h"
#include "policy/change.h"
#include "policy/error.h"
#include "segment/run_dir.h"
#include "segment/segment_file.h"

namespace sluice::node {

namespace {

void require_operator(local::peer const& who, char const* what) {
  if (!is_operator(who)) throw usage_error(fmt::format("only an operator may {}", what));
}

std::string hex(std::uint64_t hash) { return hash == 0 ? "" : fmt::format("{:016x}", hash); }

json parent_row(state const& s) {
  if (!s.has_parent()) return nullptr;
  return {{"address", s.up->socket().address()},
          {"name", s.up->parent_name()},
          {"connected", s.up->is_welcome() && !s.lease.is_silent(now().boot_ns)}};
}

json hello(state& s, local::peer const& who, json const&) {
  return {{"role", "node"},
          {"name", s.config.name},
          {"version", control::version},
          {"pid", getpid()},
          {"run_dir", s.config.run_dir},
          {"policy_hash", hex(s.site.hash())},
          {"parent", parent_row(s)},
          {"log", s.log.row(is_operator(who))},
          {"capabilities", s.services.capabilities},
          {"metrics", s.services.metrics_address}};
}

std::vector<std::string> texts_of(json const& request, char const* key, std::size_t most) {
  std::vector<std::string> out;
  auto const at = request.find(key);
  if (at == request.end() || at->is_null()) return out;
  if (!at->is_array() || at->size() > most)
    throw usage_error(fmt::format("\"{}\" must be a short list of strings", key));
  for (auto const& text : *at) {
    if (!text.is_string()) throw usage_error(fmt::format("\"{}\" must be a list of strings", key));
    out.push_back(text.get<std::string>());
  }
  return out;
}

join_request join_of(json const& request) {
  join_request r;
  r.name = local::text_if(request, "job");
  r.qos_class = local::text_if(request, "class");
  r.monitor = local::flag_of(request, "monitor", false);
  r.policy_channels = local::flag_of(request, "policy_channels", true);
  r.path_parts = static_cast<unsigned>(
      local::whole_if(request, "path_parts", 1, core::most_head_parts).value_or(0));
  r.limits = texts_of(request, "limits", core::max_channels);
  r.orders = texts_of(request, "orders", core::max_targets);
  return r;
}

/// What cannot be noted keeps nobody from running.
void note_paths(state& s, job const& j, std::string const& dir, unsigned parts) {
  try {
    segment::add_path_area(dir + "/segment", j.record.uid, j.record.gid, parts);
  } catch (error const& e) {
    s.services.log.warning("paths cannot be noted", {{"job", j.record.name}, {"why", e.what()}});
  }
}

json join(state& s, local::peer const& who, json const& request) {
  join_request const wish = join_of(request);
  // Who is inside a scheduler's job joins that one, whatever name he gives.
  job* const seat =
      is_operator(who) && wish.name ? nullptr : s.jobs.seat_of(who, wish.name.value_or(""));
  joined const got =
      seat != nullptr ? s.jobs.join_seat(*seat, who, wish, s.site) : s.jobs.join(who, wish, s.site);
  if (got.created || seat != nullptr) {
    // Its curves are right before the first process can attach.
    s.enforce(now());
    s.has_news = true;
  }
  std::string const dir = segment::job_dir(s.jobs.run_dir(), got.who->folder);
  if (wish.path_parts != 0) note_paths(s, *got.who, dir, wish.path_parts);
  return {{"job", got.who->record.name},
          {"preload", dir + "/libinterpose.so"},
          {"segment", dir + "/segment"},
          {"created", got.created},
          {"class", got.who->record.qos_class}};
}

json list_jobs(state& s, local::peer const& who, json const& request) {
  json answer = json::object();
  local::put_page(answer, "jobs", request, job_rows(s, who));
  return answer;
}

json top(state& s, local::peer const& who, json const& request) {
  json answer = {{"time", unix_s()},
                 {"cycle", s.cycle},
                 {"supplies", supply_rows(s)},
                 {"nodes", json::array({node_row(s)})}};
  local::put_page(answer, "jobs", request, job_rows(s, who));
  return answer;
}

json explain(state& s, local::peer const& who, json const& request) {
  job const& j = s.jobs.named(who, local::text_of(request, "job"));
  return {{"job", j.record.name},
          {"class", class_in_force(j, s.overrides.find(j.folder))},
          {"lines", explain_job(s, j)},
          {"streams", stream_rows(s, j)}};
}

json policy_text(state& s, local::peer const& who, json const&) {
  require_operator(who, "read the policy");
  return {{"hash", hex(s.site.hash())}, {"text", s.site.text()}};
}

json policy_apply(state& s, local::peer const& who, json const& request) {
  require_operator(who, "change the policy");
  if (s.has_parent())
    throw usage_error(fmt::format("this node takes its policy from {}: apply it there",
                                  s.config.parents.front()));
  std::string const text = local::text_of(request, "text");
  policy::site const fresh = policy::parse_policy(text, "policy");
  json answer = {{"hash", hex(policy::policy_hash(text))},
                 {"changes", policy::changes(s.site.site(), fresh)},
                 {"warnings", policy::warnings(fresh)}};
  if (local::flag_of(request, "dry_run", false)) return answer;
  s.use_policy(text, {local::text_if(request, "from").value_or("sluice policy apply"), who.uid},
               now());
  if (!s.config.policy.empty())
    answer["warnings"].push_back(
        fmt::format("at its next start this sluiced reads {} again", s.config.policy));
  return answer;
}

json policy_log(state& s, local::peer const& who, json const& request) {
  require_operator(who, "see old policies");
  if (s.services.policies == nullptr) throw sluice_error("this daemon keeps no old policies");
  return s.services.policies->answer(request);
}

control::history_reader reader_of(local::peer const& who) {
  return {is_operator(who), true, who.uid};
}

json history(state& s, local::peer const& who, json const& request) {
  auto const* const board = s.services.board;
  if (local::flag_of(request, "ops", false))
    return control::answer_op_history(board == nullptr ? nullptr : &board->ops, reader_of(who),
                                      request);
  return control::answer_history(board == nullptr ? nullptr : &board->past, reader_of(who),
                                 request);
}

json dashboard(state& s, local::peer const& who, json const&) {
  if (s.services.board == nullptr) throw sluice_error("this daemon has no dashboard");
  return {
      {"url", s.services.board->url_for(s.services.metrics_address, who.uid, is_operator(who))}};
}

/// Where users see the cluster, its controller answers them; an operator sees this node.
bool goes_above(state const& s, local::peer const& who, std::string const& verb) {
  return s.config.view == control::view_kind::cluster && s.has_parent() && !is_operator(who) &&
         local::is_from_afar(verb);
}

struct verb {
  char const* name;
  json (*does)(state&, local::peer const&, json const&);
};

constexpr verb verbs[] = {{"hello", hello},           {"join", join},
                          {"jobs", list_jobs},        {"top", top},
                          {"set", set_job},           {"pause", pause_job},
                          {"resume", resume_job},     {"explain", explain},
                          {"policy", policy_text},    {"policy-apply", policy_apply},
                          {"register", register_job}, {"release", release_job},
                          {"step", begin_step},       {"step-end", end_step},
                          {"classes", classes},       {"history", history},
                          {"dashboard", dashboard},   {"policy-log", policy_log}};

}  // namespace

json answer(state& s, local::peer const& who, json const& request) {
  std::string const name = local::text_of(request, "verb");
  auto const* const v = std::find_if(std::begin(verbs), std::end(verbs),
                                     [&](verb const& x) { return x.name == name; });
  if (v == std::end(verbs))
    throw usage_error(fmt::format("a node has no verb \"{}\"", name.substr(0, 40)));
  try {
    json out = goes_above(s, who, name) ? s.asked.ask(*s.up, who, request, now().mono_ns)
                                        : v->does(s, who, request);
    s.services.metrics.add(control::metric::local_requests_total, {v->name, "ok"});
    return out;
  } catch (error const&) {
    s.services.metrics.add(control::metric::local_requests_total, {v->name, "refused"});
    throw;
  }
}

}  // namespace sluice::node
