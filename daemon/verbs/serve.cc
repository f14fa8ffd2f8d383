// SPDX-License-Identifier: Apache-2.0
#include "verbs/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/owners.h"
#include "base/suggest.h"
#include "local/request.h"
#include "policy/change.h"
#include "policy/class_limits.h"
#include "policy/class_list.h"
#include "policy/control.h"
#include "policy/doubts.h"
#include "policy/policy.h"
#include "policy/supply.h"
#include "runtime/dashboard.h"
#include "runtime/history_rows.h"
#include "runtime/metrics_server.h"
#include "runtime/user_names.h"
#include "verbs/change.h"
#include "verbs/views/rows.h"
#include "verbs/views/sentences.h"

namespace sluice::verbs {

namespace {

using nlohmann::json;

std::string hex(std::uint64_t hash) { return hash == 0 ? "" : fmt::format("{:016x}", hash); }

json hello(role& r, local::peer const& who, json const& request) {
  auto const& services = r.services();
  json answer = {{"role", r.kind()},
                 {"name", r.config().name},
                 {"version", runtime::version},
                 {"pid", getpid()},
                 {"run_dir", r.config().run_dir},
                 {"policy_hash", hex(r.policy().hash)},
                 {"parent", nullptr},
                 {"capabilities", services.capabilities},
                 {"metrics", services.metrics_at == nullptr ? "" : services.metrics_at->address()}};
  if (auto const parent = r.parent())
    answer["parent"] = {
        {"address", parent->address}, {"name", parent->name}, {"connected", parent->is_connected}};
  r.add_to_hello(answer, who, request);
  return answer;
}

json job_row_of(role& r, std::size_t job) {
  job_view const view = r.look_at(job);
  return job_row(view, runtime::user_name(view.uid), r.overrides().find(r.name_of(job).key));
}

/// Rows are made one at a time, and only those of the page that is asked for: there may be ten
/// thousand of each.
void put_jobs(role& r, local::peer const& who, local::page& page) {
  for (std::size_t j = 0; j < r.job_count(); ++j)
    if (may_see(who, r.name_of(j)) && !page.put("jobs", [&] { return job_row_of(r, j); })) return;
}

void put_nodes(role const& r, local::page& page) {
  for (std::size_t n = 0; n < r.node_count(); ++n) {
    auto const node = r.node(n);
    if (node && !page.put("nodes", [&] { return node_row(*node); })) return;
  }
}

json jobs(role& r, local::peer const& who, json const& request) {
  json answer = {{"jobs", json::array()}};
  local::page page(answer, request);
  put_jobs(r, who, page);
  return answer;
}

json top(role& r, local::peer const& who, json const& request) {
  json answer = {{"time", unix_s()},
                 {"cycle", r.cycle()},
                 {"supplies", json::array()},
                 {"jobs", json::array()},
                 {"nodes", json::array()}};
  for (auto const& s : r.supplies()) answer["supplies"].push_back(supply_row(s));
  local::page page(answer, request);
  put_jobs(r, who, page);
  put_nodes(r, page);
  return answer;
}

json explain(role& r, local::peer const& who, json const& request) {
  std::size_t const job = find_job(r, who, local::text_of(request, "job"));
  job_view const view = r.look_at(job);
  json answer = {{"job", view.name},
                 {"class", view.qos_class},
                 {"lines", explain(view, r.details_of(job), r.overrides().find(r.name_of(job).key),
                                   unix_exact_s())},
                 {"streams", stream_rows(view)}};
  r.add_to_explain(job, answer);
  return answer;
}

json policy_text(role& r, local::peer const&, json const&) {
  policy_view const in_force = r.policy();
  return {{"hash", hex(in_force.hash)},
          {"text", in_force.text == nullptr ? std::string() : *in_force.text}};
}

json policy_apply(role& r, local::peer const& who, json const& request) {
  r.check_apply();
  std::string const text = local::text_of(request, "text");
  policy::site const next =
      policy::parse_policy(text, local::text_if(request, "name").value_or("policy"));
  policy::check_targets(next, policy::as_written());
  policy::site const none = {};
  policy_view const in_force = r.policy();
  json answer = {{"hash", hex(policy::policy_hash(text))},
                 {"changes", in_force.site == nullptr
                                 ? policy::changes(none, "", next, text)
                                 : policy::changes(*in_force.site, *in_force.text, next, text)},
                 {"warnings", policy::warnings(next)}};
  for (auto const& line : r.warnings_of(next)) answer["warnings"].push_back(line);
  for (auto const& line : policy::doubts_of_granted(next)) answer["warnings"].push_back(line);
  if (local::flag_of(request, "dry_run", false)) return answer;
  std::string const from = local::text_if(request, "from").value_or("sluice policy apply");
  for (auto const& line : r.use_policy(text, {from, who.uid})) answer["warnings"].push_back(line);
  return answer;
}

json policy_log(role& r, local::peer const&, json const& request) {
  if (r.services().policies == nullptr) throw sluice_error("this daemon keeps no old policies");
  return r.services().policies->answer(request);
}

json history(role& r, local::peer const& who, json const& request) {
  auto const* const board = r.services().board;
  runtime::history_reader const reader = {local::is_operator(who), true, who.uid};
  if (local::flag_of(request, "ops", false))
    return runtime::answer_op_history(board == nullptr ? nullptr : &board->ops, reader, request);
  return runtime::answer_history(board == nullptr ? nullptr : &board->past, reader, request);
}

json dashboard(role& r, local::peer const& who, json const&) {
  auto* const board = r.services().board;
  if (board == nullptr) throw sluice_error("this daemon has no dashboard");
  runtime::metrics_server const* const at = r.services().metrics_at;
  if (at == nullptr)
    throw usage_error("this daemon serves no page: it was started with --metrics none");
  if (at->is_waiting())  // who has it may be any user, and would be handed the key
    throw sluice_error(
        fmt::format("this daemon serves no page: somebody else has its port {}", at->address()));
  uid_t const person = owner_by(r.services().owner_of, who.uid);
  return {{"url", board->url_for(at->address(), who.uid, person, local::is_operator(who))}};
}

json classes(role& r, local::peer const& who, json const& request) {
  policy_view const in_force = r.policy();
  if (in_force.site == nullptr) throw sluice_error("this sluiced has no policy yet");
  return policy::class_list(*in_force.site,
                            {who.uid, who.gid, who.groups, runtime::user_name(who.uid)},
                            local::text_if(request, "class"), local::text_if(request, "limit"));
}

using body = json (*)(role&, local::peer const&, json const&);
constexpr body everywhere_hello = hello, everywhere_jobs = jobs, everywhere_top = top,
               everywhere_explain = explain, everywhere_set = set_job, everywhere_pause = pause_job,
               everywhere_resume = resume_job, everywhere_history = history,
               everywhere_classes = classes, everywhere_dashboard = dashboard,
               everywhere_policy = policy_text, everywhere_policy_apply = policy_apply,
               everywhere_policy_log = policy_log;
constexpr body node_join = nullptr, node_register_job = nullptr, node_release_job = nullptr,
               node_step = nullptr, node_step_end = nullptr;

constexpr bool anyone = false, operators = true;
constexpr bool reads = false, changes = true;
constexpr bool here = false, afar = true;

struct row {
  verb which;
  char const* name;
  body does;  // null: the role's own
  bool is_operators, is_change, is_afar;
};

constexpr row rows[] = {
#define VERB(symbol, name, where, who, effect, reach) \
  {verb::symbol, name, where##_##symbol, who, effect, reach},
#include "verbs/verbs.def"
};

row const& row_of(role const& r, std::string const& name) {
  for (row const& v : rows)
    if (name == v.name) return v;
  std::vector<std::string> known;
  for (row const& v : rows) known.push_back(v.name);
  throw usage_error(fmt::format("a {} does not know \"{}\"{}", r.kind(), name.substr(0, 40),
                                did_you_mean(name, known)));
}

json answer_of(role& r, row const& v, local::peer const& who, json const& request) {
  if (who.is_afar && !v.is_afar)
    throw usage_error(fmt::format("\"{}\" cannot be asked from another host", v.name));
  if (v.is_operators && !local::is_operator(who))
    throw usage_error(fmt::format("only an operator may ask for \"{}\"", v.name));
  if (auto above = r.ask_above(who, v.which, request)) return *std::move(above);
  return v.does == nullptr ? r.serve_own(v.which, who, request) : v.does(r, who, request);
}

/// A change, as the log tells it.
struct change_words {
  bool is_trial = false;
  std::string job, what;  // an assignment, or the file or version that a policy came from
};

/// Read before anything changes, for they may be refused.
change_words words_of(row const& v, json const& request) {
  if (!v.is_change) return {};
  change_words out = {local::flag_of(request, "dry_run", false),
                      local::text_if(request, "job").value_or(""),
                      local::text_if(request, "name").value_or("").substr(0, 200)};
  if (auto assignment = local::text_if(request, "assignment")) out.what = *std::move(assignment);
  if (out.is_trial && v.which != verb::policy_apply)
    throw usage_error(fmt::format("\"{}\" has no \"dry_run\"", v.name));
  return out;
}

bool has_changed(json const& answer) {
  auto const changes = answer.find("changes");
  return changes == answer.end() || !changes->empty();
}

void tell(role& r, row const& v, local::peer const& who, change_words const& words,
          json const& answer, std::string const& through) {
  if (!v.is_change || words.is_trial || !has_changed(answer)) return;
  r.services().log.info("changed by hand", {{"verb", v.name},
                                            {"by_uid", who.uid},
                                            {"through", through},
                                            {"job", words.job},
                                            {"what", words.what}});
}

/// Of a change that holds somebody back, under a policy that holds nobody back.
std::string doubt_of_policy(role const& r, row const& v) {
  policy::site const* const site = r.policy().site;
  bool const holds = v.which == verb::pause || v.which == verb::set;
  if (!holds || site == nullptr || site->control.enforce) return {};
  return "the policy is not enforced (`control.enforce` is false): what it shares holds no job "
         "back until it is";
}

}  // namespace

bool is_from_afar(verb which) { return rows[static_cast<unsigned>(which)].is_afar; }

json serve(role& r, local::peer const& who, json const& request, std::string const& through) {
  runtime::metric_table& metrics = r.services().metrics;
  constexpr auto requests = runtime::metric::local_requests_total;
  char const* name = "unknown";
  try {
    row const& v = row_of(r, local::text_of(request, "verb"));
    name = v.name;
    change_words const words = words_of(v, request);
    json answer = answer_of(r, v, who, request);
    bool const is_made = v.is_change && !words.is_trial;
    for (std::string const& doubt : {is_made ? r.doubt_of_changes() : "", doubt_of_policy(r, v)})
      if (!doubt.empty()) answer["warnings"].push_back(doubt);
    tell(r, v, who, words, answer, through);
    metrics.add(requests, {name, "ok"});
    return answer;
  } catch (...) {
    metrics.add(requests, {name, "refused"});
    throw;
  }
}

void publish(runtime::metric_table& metrics, local::server::usage const& used) {
  using runtime::metric;
  metrics.set(metric::local_clients, static_cast<double>(used.clients));
  metrics.set(metric::local_clients_refused_total, static_cast<double>(used.refused));
}

bool may_see(local::peer const& who, job_name const& job) {
  if (!job.is_visible) return false;
  return local::is_operator(who) || (job.has_owner && job.uid == who.uid);
}

std::size_t find_job(role const& r, local::peer const& who, std::string const& name) {
  auto const at = name.rfind('@');
  std::string const owner = at == name.npos ? "" : name.substr(0, at);
  std::string const own_name = at == name.npos ? name : name.substr(at + 1);
  std::vector<std::size_t> found;
  std::vector<std::string> known;
  for (std::size_t j = 0; j < r.job_count(); ++j) {
    job_name const of = r.name_of(j);
    if (!may_see(who, of)) continue;
    known.push_back(of.name);
    bool const is_owner =
        owner.empty() || owner == std::to_string(of.uid) || owner == runtime::user_name(of.uid);
    if (of.name == own_name && is_owner) found.push_back(j);
  }
  // A user's own comes first: an operator's plain name may mean his own job.
  if (found.size() > 1 && owner.empty())
    for (std::size_t const j : found)
      if (r.name_of(j).uid == who.uid) return j;
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw usage_error(
        fmt::format("no job \"{}\" here{}; `sluice report --job` knows the last hour of "
                    "one that has ended",
                    name.substr(0, 120), did_you_mean(own_name, known)));
  std::string all;
  for (std::size_t const j : found)
    all += fmt::format("{}{}@{}", all.empty() ? "" : ", ", runtime::user_name(r.name_of(j).uid),
                       own_name);
  throw usage_error(fmt::format("more than one job \"{}\": say which of {}", own_name, all));
}

}  // namespace sluice::verbs
