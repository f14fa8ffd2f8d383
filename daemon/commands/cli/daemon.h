// SPDX-License-Identifier: Apache-2.0
// The daemon that a verb asks. It is found by its socket: in --run-dir, else in the directory of
// the site's daemon, else in the user's own run directory. Whatever is wrong with it, a program can
// still be run: callers decide what a missing daemon means.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "commands/cli/options.h"

namespace sluice::cli {

inline constexpr char site_run_dir[] = "/run/sluice";  // only root can have made it

inline constexpr int hello_ms = 250;     // silence longer than this: as if there were none
inline constexpr int patient_ms = 5000;  // for who asks the daemon on purpose

struct daemon_at {
  std::string socket;
  std::string role;  // node, relay, cluster
  std::string name;
  bool has_journal = false;  // of durable fsync
  bool is_trusted = false;   // runs as root, as us, or where the site puts it
};

struct daemon_search {
  std::optional<daemon_at> found;
  std::string why;        // none was found
  bool is_there = false;  // and yet one is: it does not answer, or refuses
  bool is_full = false;   // it has no place for us now
};

/// Sockets in the order in which they are tried.
std::vector<std::string> daemon_sockets(global_options const& global);

daemon_search find_daemon(global_options const& global, int timeout_ms);

/// One line on standard error where a daemon is there and cannot be used.
void warn_of(daemon_search const& search);

/// Throws with advice when there is none.
daemon_at need_daemon(global_options const& global);

/// One request, one answer; throws the daemon's error.
nlohmann::json ask(daemon_at const& daemon, nlohmann::json const& request,
                   int timeout_ms = patient_ms);

/// All pages of an answer whose rows are in answer[key], as one answer.
nlohmann::json ask_all(daemon_at const& daemon, nlohmann::json request, char const* key,
                       int timeout_ms = patient_ms);

/// The daemon that has this job; none when there is no daemon, or the job is ours alone.
std::optional<daemon_at> daemon_of_job(global_options const& global, std::string const& job);

/// Where jobs without a daemon lie. A --run-dir that is another user's daemon's is not ours to
/// use: then the default.
std::string own_run_dir(global_options const& global);

/// The same, but empty instead of making it.
std::string own_run_dir_if_there(global_options const& global);

}  // namespace sluice::cli
