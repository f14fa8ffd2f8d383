// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/job.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/number.h"
#include "base/suggest.h"
#include "commands/cli/daemon.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

bool exists(std::string const& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

/// `NAME` is one of ours; `UID@NAME` and `USER@NAME` are somebody's.
std::pair<uid_t, std::string> owner_and_name(std::string const& text) {
  auto const at = text.find('@');
  std::string const name = at == std::string::npos ? text : text.substr(at + 1);
  segment::check_job_name(name);
  if (at == std::string::npos) return {geteuid(), name};
  std::string const user = text.substr(0, at);
  uid_t uid = 0;
  if (to_number(user, uid)) return {uid, name};
  if (passwd const* entry = getpwnam(user.c_str())) return {entry->pw_uid, name};
  throw usage_error(fmt::format("job {}: there is no user {}", text, user));
}

/// The directory of a job of a daemon: its own user's have their plain name.
std::optional<open_job> find_daemons_job(std::string const& run_dir, uid_t uid,
                                         std::string const& name) {
  for (std::string const& folder : {fmt::format("{}@{}", uid, name), name}) try {
      std::string const path = segment::segment_path(run_dir, folder);
      if (!exists(path)) continue;
      return open_job{run_dir, folder, uid, segment::mapping::open(path, uid)};
    } catch (error const&) {
      continue;  // not ours to read
    }
  return std::nullopt;
}

/// A daemon remembers what has ended.
std::string hint_for_ended(global_options const& global, std::string const& name) {
  if (!find_daemon(global, hello_ms).found) return {};
  return fmt::format("; if it has ended, `sluice report --job {}` knows its last hour", name);
}

std::string folder_of(std::string const& path) { return fs::path(path).parent_path(); }

}  // namespace

open_job find_job(global_options const& global, std::string const& name) {
  segment::check_job_name(name);
  std::string const run_dir = own_run_dir(global);
  std::string const path = segment::segment_path(run_dir, name);
  if (!exists(path))
    throw usage_error(fmt::format("no job {} in {}{}{}", name, run_dir,
                                  did_you_mean(name, segment::list_jobs(run_dir)),
                                  hint_for_ended(global, name)));
  return {run_dir, name, geteuid(), segment::mapping::open(path)};
}

std::optional<open_job> find_readable_job(global_options const& global, std::string const& name) {
  auto const [uid, plain] = owner_and_name(name);
  for (auto const& socket : daemon_sockets(global))
    if (auto job = find_daemons_job(folder_of(socket), uid, plain)) return job;
  std::string const own = own_run_dir_if_there(global);
  if (own.empty() || uid != geteuid()) return std::nullopt;
  return find_daemons_job(own, uid, plain);
}

std::vector<segment_file> segments_in_reach(global_options const& global) {
  std::vector<segment_file> out;
  if (std::string const own = own_run_dir_if_there(global); !own.empty())
    for (auto const& name : segment::list_jobs(own))
      out.push_back({segment::segment_path(own, name), geteuid()});
  // A daemon's directory cannot be listed by everybody.
  auto const search = find_daemon(global, patient_ms);
  warn_of(search);
  if (!search.found || search.found->role != "node") return out;
  auto const answer = ask_all(*search.found, {{"verb", "jobs"}}, "jobs");
  for (auto const& job : answer["jobs"]) {
    std::string const name = job.value("job", "");
    uid_t const uid = job.value("uid", geteuid());
    for (std::string const& folder : {fmt::format("{}@{}", uid, name), name})
      out.push_back({segment::segment_path(folder_of(search.found->socket), folder), uid});
  }
  return out;
}

}  // namespace sluice::cli
