// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/daemon.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/on_stderr.h"
#include "local/local.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

constexpr int most_pages = 10000;

std::string socket_in(std::string const& dir) { return dir + "/" + local::socket_name; }

std::string text_in(nlohmann::json const& answer, char const* key) {
  auto const at = answer.find(key);
  return at != answer.end() && at->is_string() ? at->get<std::string>() : std::string();
}

daemon_at greet(std::string const& socket, int timeout_ms) {
  uid_t served_by = static_cast<uid_t>(-1);
  auto const answer = local::ask(socket, {{"verb", "hello"}}, timeout_ms, &served_by);
  daemon_at d;
  d.socket = socket;
  d.role = text_in(answer, "role");
  d.name = text_in(answer, "name");
  d.has_journal = answer.contains("journal") && answer["journal"].is_object();
  d.is_trusted = served_by == 0 || served_by == geteuid() || socket == socket_in(site_run_dir);
  return d;
}

bool is_foreign(std::string const& dir) {
  struct stat st = {};
  return stat(dir.c_str(), &st) == 0 && st.st_uid != geteuid();
}

/// Something of a daemon lies there, alive or not.
bool is_daemons(std::string const& dir) {
  struct stat st = {};
  return lstat(socket_in(dir).c_str(), &st) == 0;
}

void add(std::string& why, std::string const& more) { why += (why.empty() ? "" : "; ") + more; }

bool has_own_job(global_options const& global, std::string const& job) {
  std::string const dir = own_run_dir_if_there(global);
  std::error_code failed;
  return !dir.empty() && fs::exists(segment::segment_path(dir, job), failed);
}

}  // namespace

std::vector<std::string> daemon_sockets(global_options const& global) {
  if (!global.run_dir.empty()) return {socket_in(global.run_dir)};
  std::vector<std::string> out = {socket_in(site_run_dir)};
  try {
    std::string const own = socket_in(segment::default_run_dir());
    if (own != out.front()) out.push_back(own);
  } catch (error const&) {
    // Nobody's home: nobody's daemon.
  }
  return out;
}

daemon_search find_daemon(global_options const& global, int timeout_ms) {
  daemon_search search;
  if (global.no_daemon) {
    search.why = "none was asked, because of --no-daemon";
    return search;
  }
  for (auto const& socket : daemon_sockets(global)) {
    try {
      search.found = greet(socket, timeout_ms);
      return search;
    } catch (local::no_daemon const& e) {
      add(search.why, e.what());
    } catch (local::no_answer const& e) {
      search.is_there = true;
      search.is_full = search.is_full || dynamic_cast<local::hung_up const*>(&e) != nullptr;
      add(search.why, e.what());
    } catch (error const& e) {  // its own words
      search.is_there = true;
      search.is_full = search.is_full || e.status() == exit_full;
      add(search.why, fmt::format("{}: {}", socket, e.what()));
    }
  }
  return search;
}

void warn_of(daemon_search const& search) {
  if (search.is_there && !search.found) on_stderr("sluice: warning: {}\n", search.why);
}

daemon_at need_daemon(global_options const& global) {
  auto const search = find_daemon(global, patient_ms);
  if (search.found) return *search.found;
  if (search.is_there) throw sluice_error(search.why);
  throw sluice_error(
      fmt::format("no daemon answers: {}. Start one (sluiced --role node), or name the directory "
                  "of one that runs with --run-dir DIR",
                  search.why));
}

nlohmann::json ask(daemon_at const& daemon, nlohmann::json const& request, int timeout_ms) {
  return local::ask(daemon.socket, request, timeout_ms);
}

nlohmann::json ask_all(daemon_at const& daemon, nlohmann::json request, char const* key,
                       int timeout_ms) {
  auto const next_of = [](nlohmann::json const& answer) {
    auto const at = answer.find("next");
    return at != answer.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
  };
  nlohmann::json whole = ask(daemon, request, timeout_ms);
  if (!whole[key].is_array()) whole[key] = nlohmann::json::array();
  std::int64_t from = 0;
  std::int64_t next = next_of(whole);
  for (int page = 0; next > from && page < most_pages; ++page) {
    request["from"] = from = next;
    nlohmann::json const part = ask(daemon, request, timeout_ms);
    if (auto const rows = part.find(key); rows != part.end() && rows->is_array())
      whole[key].insert(whole[key].end(), rows->begin(), rows->end());
    next = next_of(part);
  }
  whole["next"] = nullptr;
  return whole;
}

std::optional<daemon_at> daemon_of_job(global_options const& global, std::string const& job) {
  auto const search = find_daemon(global, patient_ms);
  if (!search.found) {
    if (search.is_there && !has_own_job(global, job))
      throw sluice_error(fmt::format("job {}: {}", job, search.why));
    return std::nullopt;
  }
  try {
    ask(*search.found, {{"verb", "explain"}, {"job", job}});
  } catch (error const&) {
    if (has_own_job(global, job)) return std::nullopt;
    throw;
  }
  return search.found;
}

std::string own_run_dir(global_options const& global) {
  bool const theirs =
      !global.run_dir.empty() && is_foreign(global.run_dir) && is_daemons(global.run_dir);
  if (!theirs && !global.run_dir.empty()) return segment::run_dir(global.run_dir);
  return segment::run_dir_somewhere();
}

std::string own_run_dir_if_there(global_options const& global) {
  std::string dir = global.run_dir;
  std::error_code failed;
  try {
    if (dir.empty() || (is_foreign(dir) && is_daemons(dir))) return segment::run_dir_if_there();
    return fs::is_directory(segment::jobs_dir(dir), failed) ? segment::run_dir(dir) : std::string();
  } catch (error const&) {
    return {};
  }
}

}  // namespace sluice::cli
