// SPDX-License-Identifier: Apache-2.0
// The run directory: where the segments of this user's jobs on this node lie.
//   RUN/lock                     held while jobs are made, joined or cleared away
//   RUN/jobs/JOB/segment         the shared memory
//   RUN/jobs/JOB/libinterpose.so symbolic link: LD_PRELOAD names it, and the stage finds the
//   segment beside it
// Nobody else may write in it or rename what is above it, or they could put a library into our
// processes.
#pragma once

#include <string>
#include <vector>

namespace sluice::segment {

/// $XDG_RUNTIME_DIR/sluice if that directory is ours, /run/sluice for root,
/// ~/.cache/sluice/run/HOST; perhaps not there.
std::string default_run_dir();

/// Where the default cannot be used: directories of our uid in $TMPDIR and /dev/shm. Anybody may
/// have made one of that name there; it counts only when it is a directory of ours that is private.
std::vector<std::string> spare_run_dirs();

/// The default, made if missing, or else the first of the spare ones. Throws what is wrong with the
/// default when none can be used.
std::string run_dir_somewhere();

/// The default or a spare one, where jobs lie already; empty: nowhere.
std::string run_dir_if_there();

/// `wanted`, or the default when empty; made if missing, canonical, checked. Throws when it is not
/// safely ours or LD_PRELOAD cannot carry its name.
std::string run_dir(std::string const& wanted);

/// A job's name: letters, digits, `.`, `_`, `-`; throws a usage error.
void check_job_name(std::string const& job);

/// Where a daemon finds the files of another user's job: hard links in a directory that he may not
/// enter. He may mount something over the names that he can reach. Of a job that has none: its
/// directory.
std::string own_links(std::string const& job_dir);
inline constexpr char own_links_name[] = "own";

std::string jobs_dir(std::string const& run_dir);
/// What the daemons of users' journals say of themselves; of the daemon's own user alone.
std::string journals_dir(std::string const& run_dir);
std::string job_dir(std::string const& run_dir, std::string const& job);
std::string segment_path(std::string const& run_dir, std::string const& job);
/// The area of its epochs; there when a target has an "after".
std::string after_path(std::string const& segment_path);
/// The order area of the job whose segment this is; there when a target is durable.
std::string order_path(std::string const& segment_path);
/// The directories its calls used; there when `sluice run --paths` asked.
std::string paths_path(std::string const& segment_path);

/// What its requests are for; there when its policy has roles.
std::string roles_path(std::string const& segment_path);
/// Its small writes that wait; there when a target is strict.
std::string rings_path(std::string const& segment_path);

/// A file in the job's folder: a scheduler's job, of the class that is written there.
std::string held_path(std::string const& run_dir, std::string const& job);

/// Holds a lock on a file as long as it lives.
class file_lock {
 public:
  explicit file_lock(std::string const& path);  // made if missing
  ~file_lock();
  file_lock(file_lock const&) = delete;
  file_lock& operator=(file_lock const&) = delete;

 private:
  int fd_;
};

}  // namespace sluice::segment
