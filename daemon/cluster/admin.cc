// SPDX-License-Identifier: Apache-2.0
#include "cluster/admin.h"
#include "policy/change.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "cluster/change_job.h"
#include "cluster/clock.h"
#include "cluster/explain.h"
#include "cluster/rows.h"
#include "control/dashboard.h"
#include "control/history_rows.h"
#include "control/policy_log.h"
#include "local/request.h"
#include "policy/class_list.h"
#include "policy/error.h"
#include "policy/suggest.h"

namespace sluice::cluster {

namespace {

using nlohmann::json;
using verb = json (*)(controller&, local::peer const&, json const&);

json hello(controller& c, local::peer const&, json const&) {
  json parent = nullptr;
  if (c.is_relay())
    parent = {{"address", c.parent_address()},
              {"name", c.parent_name()},
              {"connected", c.is_parent_heard()}};
  return {{"role", c.is_relay() ? "relay" : "cluster"},
          {"name", c.config().name},
          {"version", control::version},
          {"pid", getpid()},
          {"run_dir", c.config().run_dir},
          {"policy_hash", fmt::format("{:016x}", c.decisions().policy().hash)},
          {"parent", parent},
          {"listen", c.listens_at()},
          {"capabilities", c.services().capabilities},
          {"metrics", c.services().metrics_address}};
}

json jobs(controller& c, local::peer const& who, json const& request) {
  json answer = json::object();
  put_rows(answer, request, c.decisions(), who, false, boot_ns());
  return answer;
}

json top(controller& c, local::peer const& who, json const& request) {
  time_ns const now = boot_ns();
  json answer = {{"time", unix_s()},
                 {"cycle", c.decisions().cycle()},
                 {"supplies", supply_rows(c.decisions(), now)}};
  put_rows(answer, request, c.decisions(), who, true, now);
  return answer;
}

json explain(controller& c, local::peer const& who, json const& request) {
  std::uint32_t const j = find_job(c.decisions(), who, local::text_of(request, "job"));
  roster const& r = c.decisions().who();
  return {{"job", name_of(r.jobs[j])},
          {"class", c.decisions().policy().classes[r.jobs[j].row].name},
          {"lines", explain_job(c.decisions(), j)},
          {"streams", stream_rows(c.decisions(), j)}};
}

json policy_text(controller& c, local::peer const& who, json const&) {
  if (!is_operator(who)) throw sluice_error("only root and the daemon's user may read the policy");
  std::string const& text = c.in_force().text;
  return {{"hash", fmt::format("{:016x}", c.decisions().policy().hash)}, {"text", text}};
}

json policy_apply(controller& c, local::peer const& who, json const& request) {
  if (!is_operator(who))
    throw sluice_error("only root and the daemon's user may change the policy");
  if (c.is_relay())
    throw usage_error("this is a relay: its policy comes from the cluster, apply it there");
  std::string const text = local::text_of(request, "text");
  bool const dry_run = local::flag_of(request, "dry_run", false);
  policy::site site = policy::parse_policy(text, "policy");
  std::vector<std::string> const what = policy::changes(c.in_force().site, site);
  json answer = {{"hash", fmt::format("{:016x}", policy::policy_hash(text))},
                 {"changes", what},
                 {"warnings", warnings_of(c.decisions(), site)}};
  if (dry_run) return answer;
  c.use_policy(std::move(site), text,
               {local::text_if(request, "from").value_or("sluice policy apply"), who.uid});
  if (!c.keep_applied(text))
    answer["warnings"].push_back("it could not be saved: a restart goes back to the file");
  return answer;
}

json policy_log(controller& c, local::peer const& who, json const& request) {
  if (!is_operator(who)) throw sluice_error("only root and the daemon's user may see old policies");
  if (c.services().policies == nullptr) throw sluice_error("this daemon keeps no old policies");
  return c.services().policies->answer(request);
}

json history(controller& c, local::peer const& who, json const& request) {
  auto const* const board = c.services().board;
  return control::answer_history(board == nullptr ? nullptr : &board->past,
                                 {is_operator(who), true, who.uid}, request);
}

json dashboard(controller& c, local::peer const& who, json const&) {
  if (c.services().board == nullptr) throw sluice_error("this daemon has no dashboard");
  return {{"url",
           c.services().board->url_for(c.services().metrics_address, who.uid, is_operator(who))}};
}

json classes(controller& c, local::peer const& who, json const& request) {
  passwd const* const user = getpwuid(who.uid);
  std::string const name = user == nullptr ? std::to_string(who.uid) : user->pw_name;
  return policy::class_list(c.in_force().site, {who.uid, who.gid, who.groups, name},
                            local::text_if(request, "class"), local::text_if(request, "limit"));
}

struct row {
  char const* name;
  verb serve;
  bool changes = false;
};
constexpr row verbs[] = {
    {"hello", hello},
    {"jobs", jobs},
    {"top", top},
    {"explain", explain},
    {"set", set_job, true},
    {"pause", pause_job, true},
    {"resume", resume_job, true},
    {"policy", policy_text},
    {"classes", classes},
    {"policy-apply", policy_apply, true},
    {"policy-log", policy_log},
    {"history", history},
    {"dashboard", dashboard},
};

}  // namespace

json serve_request(controller& c, local::peer const& who, json const& request,
                   std::string const& through) {
  std::string const name = local::text_of(request, "verb");
  for (row const& v : verbs) {
    if (name != v.name) continue;
    try {
      if (who.is_afar && !local::is_from_afar(name))
        throw usage_error(fmt::format("\"{}\" is not answered from afar", name));
      json answer = v.serve(c, who, request);
      c.count_request(v.name, true);
      if (v.changes && !local::flag_of(request, "dry_run", false))
        c.services().log.info("changed by hand",
                              {{"verb", v.name},
                               {"by_uid", who.uid},
                               {"through", through},
                               {"job", local::text_if(request, "job").value_or("")},
                               {"what", local::text_if(request, "assignment").value_or("")}});
      return answer;
    } catch (...) {
      c.count_request(v.name, false);
      throw;
    }
  }
  c.count_request("unknown", false);
  throw usage_error(fmt::format("a {} does not know \"{}\"", c.is_relay() ? "relay" : "cluster",
                                name.substr(0, 40)));
}

}  // namespace sluice::cluster
