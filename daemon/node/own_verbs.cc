// SPDX-License-Identifier: Apache-2.0
#include "node/own_verbs.h"

#include <fmt/format.h>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "core/path_head.h"
#include "local/request.h"
#include "node/clock.h"
#include "node/job_result.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"
#include "segment/segment_file.h"
#include "verbs/role.h"

namespace sluice::node {

using nlohmann::json;

namespace {

constexpr std::int64_t most_uid = 0xfffffffe;
constexpr std::size_t most_path = 4096;

json scheduled_answer(state const& s, job const& j) {
  auto const& terms = *j.record.scheduler;
  std::string const library = segment::job_dir(s.jobs.run_dir(), j.folder) + "/libinterpose.so";
  return {{"job", j.record.name},
          {"class", j.record.qos_class},
          {"preload", terms.is_metered ? library : ""},
          {"note", terms.note}};
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
  job& j = s.jobs.schedule(a, s.site);
  j.record.scheduler->is_held = false;
  s.enforce(now());
  s.jobs.settle(j);
  s.has_news = true;
  return j;
}

/// The scheduler's job, also one that was announced since somebody looked.
job* announced_job(state& s, std::string const& name,
                   std::optional<std::uint64_t> uid = std::nullopt) {
  job* const there = scheduled_job(s, name, uid);
  if (there != nullptr && there->record.scheduler->is_held) return there;
  job* const fresh = s.take_announced(name, now());
  return fresh != nullptr && (!uid || fresh->record.uid == *uid) ? fresh : there;
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

/// By limit, what its cost file says.
std::map<std::string, std::string> costs_of(json const& request) {
  std::map<std::string, std::string> out;
  auto const rows = request.find("costs");
  if (rows == request.end() || rows->is_null()) return out;
  if (!rows->is_array() || rows->size() > core::max_cost_tables)
    throw usage_error(fmt::format("\"costs\" must be a list of at most {}", core::max_cost_tables));
  for (auto const& row : *rows) {
    if (!row.is_object()) throw usage_error("\"costs\" must be a list of objects");
    out[local::text_of(row, "limit")] = local::text_of(row, "cost");
  }
  return out;
}

std::uint64_t number_of(json const& row, char const* key) {
  auto const at = row.find(key);
  if (at == row.end() || !at->is_number_unsigned())
    throw usage_error(fmt::format("\"{}\" must be a whole number, and not negative", key));
  return at->get<std::uint64_t>();
}

/// A directory as realpath(3) would write it.
bool is_canonical(std::string const& path) {
  return path.starts_with('/') && path.size() < most_path && path.find('\0') == path.npos &&
         (path == "/" || !path.ends_with('/')) && path.find("//") == path.npos &&
         std::filesystem::path(path).lexically_normal() == path;
}

/// Where the targets lie that the user names: the daemon looks at no path of his.
std::map<std::string, policy::place> places_of(json const& request) {
  std::map<std::string, policy::place> out;
  auto const rows = request.find("places");
  if (rows == request.end() || rows->is_null()) return out;
  constexpr std::size_t most = core::max_channels + core::max_targets;
  if (!rows->is_array() || rows->size() > most)
    throw usage_error(fmt::format("\"places\" must be a list of at most {}", most));
  for (auto const& row : *rows) {
    if (!row.is_object()) throw usage_error("\"places\" must be a list of objects");
    policy::place at{local::text_of(row, "path"), number_of(row, "device"), number_of(row, "inode"),
                     number_of(row, "mount_id"), number_of(row, "identity")};
    if (!is_canonical(at.path)) throw usage_error("\"path\" of a place must be canonical");
    out[local::text_of(row, "target")] = std::move(at);
  }
  return out;
}

constexpr std::int64_t most_asked_ms = 3'600'000;

join_request join_of(json const& request) {
  join_request r;
  r.name = local::text_if(request, "job");
  r.qos_class = local::text_if(request, "class");
  r.monitor = local::flag_of(request, "monitor", false);
  r.policy_channels = local::flag_of(request, "policy_channels", true);
  r.path_parts = static_cast<unsigned>(
      local::whole_if(request, "path_parts", 1, core::most_head_parts).value_or(0));
  r.asked_ns = 1'000'000 * local::whole_if(request, "asked_ms", 0, most_asked_ms).value_or(0);
  r.limits = texts_of(request, "limits", core::max_channels);
  r.orders = texts_of(request, "orders", core::max_targets);
  r.small = texts_of(request, "small", core::max_targets);
  r.costs = costs_of(request);
  r.places = places_of(request);
  return r;
}

/// What cannot be noted keeps nobody from running.
void note_paths(state& s, job& j, std::string const& dir, unsigned parts) {
  try {
    if (j.is_broken()) return;
    segment::add_path_area(dir + "/segment", j.record.uid, j.record.gid, parts);
    j.map.change({.what = segment::touch::beside, .word = abi::paths_beside});
    j.areas.hold(dir, j.record.uid);  // what a lease keeps from us is tried again
  } catch (error const& e) {
    s.services.log.warning("paths cannot be noted", {{"job", j.record.name}, {"why", e.what()}});
  }
}

}  // namespace

job* scheduled_job(state const& s, std::string const& name, std::optional<std::uint64_t> uid) {
  job* found = nullptr;
  for (auto const& j : s.jobs.all()) {
    if (!j->record.scheduler || j->record.name != name) continue;
    if (uid && j->record.uid != *uid) continue;
    if (found == nullptr || j->record.scheduler->is_held) found = j.get();
  }
  return found;
}

json join(state& s, local::peer const& who, json const& request) {
  join_request const wish = join_of(request);
  // Who is inside a scheduler's job joins that one, whatever name he gives.
  job* const scheduled = local::is_operator(who) && wish.name
                             ? nullptr
                             : s.jobs.scheduled_job_of(who, wish.name.value_or(""));
  joined const got = scheduled != nullptr ? s.jobs.join_scheduled(*scheduled, who, wish, s.site)
                                          : s.jobs.join(who, wish, s.site);
  if (got.created || scheduled != nullptr) {
    // Its curves are right before the first process can attach.
    s.enforce(now());
    s.has_news = true;
  }
  s.came(now());
  std::string const dir = segment::job_dir(s.jobs.run_dir(), got.who->folder);
  if (wish.path_parts != 0) note_paths(s, *got.who, dir, wish.path_parts);
  s.jobs.settle(*got.who);  // what was written is there before its programs are
  return {{"job", got.who->record.name},
          {"preload", dir + "/libinterpose.so"},
          {"segment", dir + "/segment"},
          {"created", got.created},
          {"class", got.who->record.qos_class}};
}

json register_job(state& s, json const& request) {
  std::string const name = local::text_of(request, "job");
  job* const j = announced_job(s, name);
  if (std::string const why = s.why_waiting(name); j == nullptr && !why.empty())
    throw sluice_error(fmt::format("job {} {}", name, why));
  if (j == nullptr) throw usage_error(fmt::format("job {} is not announced", name));
  return scheduled_answer(s, *j);
}

json release_job(state& s, json const& request) {
  std::string const name = local::text_of(request, "job");
  job const* const j = scheduled_job(s, name);
  if (j == nullptr) throw usage_error(fmt::format("job {} is not the scheduler's", name));
  json const answer = {{"job", name}, {"line", s.outcome_of(*j)}};
  s.heed_scheduler(now());
  return answer;
}

json begin_step(state& s, local::peer const& who, json const& request) {
  std::string const name = local::text_of(request, "job");
  job* const j = announced_job(s, name, local::whole_if(request, "uid", 0, most_uid));
  job& of = j != nullptr ? *j : unannounced(s, request, name);
  s.came(now());
  auto const pid = static_cast<std::uint32_t>(who.pid);
  bool const is_batch = local::text_if(request, "step").value_or("") == "batch";
  s.jobs.add_step(of, pid, is_batch);
  json answer = scheduled_answer(s, of);
  auto const wish = local::text_if(request, "class");
  if (wish && *wish != of.record.qos_class && of.record.scheduler->note.empty())
    answer["note"] = fmt::format("a step has the class of its job, \"{}\"", of.record.qos_class);
  return answer;
}

json end_step(state& s, job const& j, json const& request) {
  bool const is_batch = local::text_if(request, "step").value_or("") == "batch";
  bool const tells = j.record.scheduler && j.record.scheduler->is_metered && !j.is_broken() &&
                     (is_batch || !j.record.scheduler->had_batch);
  return {{"line", tells ? s.outcome_of(j) : ""}};
}

}  // namespace sluice::node
