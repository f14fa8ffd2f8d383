// SPDX-License-Identifier: Apache-2.0
// The announcements of a batch scheduler: one file per job in RUN/scheduler, made by root when the
// job is given the node and removed when it is over. The files are the truth; a message that one
// has changed only saves time, so a job announced while the daemon was dead is not lost. Pure,
// except for looking into the folder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::node {

struct announcement {
  std::string job;
  uid_t uid = 0;
  std::optional<gid_t> gid;  // none: as the user database has it
  std::string qos_class;     // empty: none was named
  std::vector<std::string> limits;
  std::string account;
  std::string label;  // how users call it, such as 12_3
  unsigned nodes = 1;
};

/// Throws sluice_error when it is none, or of another job than `job`.
announcement read_announcement(std::string const& text, std::string const& job);

/// Digits, or digits and what follows a dot or an underscore (a step, a task of an array): users
/// cannot make jobs of such names.
bool is_schedulers_name(std::string_view name);

std::string scheduler_dir(std::string const& run_dir);

struct announcements {
  std::vector<std::string> names;  // sorted
  bool is_cut = false;             // there are more: who is not named may be announced
};

/// None when the folder cannot be read, so nobody knows. One that is not there or that others could
/// write in announces nothing.
std::optional<announcements> announced(std::string const& run_dir);

/// Whether it is not announced, for sure: of a list that is cut its file is asked for.
bool is_withdrawn(announcements const& by, std::string const& run_dir, std::string const& job);

/// The job that the text of /proc/PID/cgroup names, empty when it names none. Only groups that
/// slurmd makes count, at the places where no user can make any; `node` is its name where several
/// slurmd run on a host.
std::string job_in_groups(std::string_view text, std::string_view node);

}  // namespace sluice::node
