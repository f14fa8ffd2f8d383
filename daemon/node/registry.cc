// SPDX-License-Identifier: Apache-2.0
#include "node/registry.h"

#include <fmt/format.h>

#include "control/user_names.h"
#include "local/request.h"
#include "node/clock.h"
#include "node/outcome.h"
#include "policy/class_list.h"
#include "policy/error.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::node {

using nlohmann::json;

namespace {

constexpr std::int64_t most_uid = 0xfffffffe;

void require_root(local::peer const& who) {
  if (!is_operator(who)) throw usage_error("only root speaks for the scheduler");
}

json seat_answer(state const& s, job const& j) {
  auto const& seat = *j.record.seat;
  std::string const library = segment::job_dir(s.jobs.run_dir(), j.folder) + "/libinterpose.so";
  return {{"job", j.record.name},
          {"class", j.record.qos_class},
          {"preload", seat.is_metered ? library : ""},
          {"note", seat.note}};
}

/// A step of a job that nobody announced: it is one for as long as it has steps.
job& unannounced(state& s, json const& request, std::string const& name) {
  announcement a;
  a.job = name;
  auto const uid = local::whole_if(request, "uid", 0, most_uid);
  if (!uid) throw usage_error("step: of which \"uid\"?");
  a.uid = static_cast<uid_t>(*uid);
  if (auto const gid = local::whole_if(request, "gid", 0, most_uid))
    a.gid = static_cast<gid_t>(*gid);
  a.qos_class = local::text_if(request, "class").value_or("");
  job& j = s.jobs.seat(a, s.site);
  j.record.seat->is_held = false;
  s.enforce(now());
  s.has_news = true;
  return j;
}

job* seated(state const& s, std::string const& name) {
  for (auto const& j : s.jobs.all())
    if (j->record.seat && j->record.name == name) return j.get();
  return nullptr;
}

}  // namespace

json register_job(state& s, local::peer const& who, json const& request) {
  require_root(who);
  std::string const name = local::text_of(request, "job");
  job* j = seated(s, name);
  if (j == nullptr) j = s.begin_seat(name, now());
  if (j == nullptr) throw usage_error(fmt::format("job {} is not announced", name));
  return seat_answer(s, *j);
}

json release_job(state& s, local::peer const& who, json const& request) {
  require_root(who);
  std::string const name = local::text_of(request, "job");
  job const* const j = seated(s, name);
  if (j == nullptr) throw usage_error(fmt::format("job {} is not the scheduler's", name));
  json const answer = {{"job", name}, {"line", outcome_line(s, *j)}};
  s.heed_scheduler(now());
  return answer;
}

json begin_step(state& s, local::peer const& who, json const& request) {
  require_root(who);
  std::string const name = local::text_of(request, "job");
  job* j = seated(s, name);
  if (j == nullptr) j = s.begin_seat(name, now());
  job& of = j != nullptr ? *j : unannounced(s, request, name);
  auto const pid = static_cast<std::uint32_t>(who.pid);
  bool const is_batch = local::text_if(request, "step").value_or("") == "batch";
  s.jobs.add_step(of, {pid, segment::start_ticks(pid)}, is_batch);
  json answer = seat_answer(s, of);
  auto const wish = local::text_if(request, "class");
  if (wish && *wish != of.record.qos_class && of.record.seat->note.empty())
    answer["note"] = fmt::format("a step has the class of its job, \"{}\"", of.record.qos_class);
  return answer;
}

json end_step(state& s, local::peer const& who, json const& request) {
  job const& j = s.jobs.named(who, local::text_of(request, "job"));
  bool const is_batch = local::text_if(request, "step").value_or("") == "batch";
  bool const tells = j.record.seat && j.record.seat->is_metered && !j.is_broken() &&
                     (is_batch || !j.record.seat->had_batch);
  return {{"line", tells ? outcome_line(s, j) : ""}};
}

json classes(state& s, local::peer const& who, json const& request) {
  if (!s.site.is_set()) throw sluice_error("this sluiced has no policy yet");
  return policy::class_list(s.site.site(),
                            {who.uid, who.gid, who.groups, control::user_name(who.uid)},
                            local::text_if(request, "class"), local::text_if(request, "limit"));
}

}  // namespace sluice::node
