// SPDX-License-Identifier: Apache-2.0
#include "segment/jobs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/process_mark.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

namespace fs = std::filesystem;

std::string name_of(foreign<abi::process_slot> const& slot) { return one_line(text_of(slot.name)); }

/// `.new-PID` or `.new-PID-WHOSE`: a job that was being made.
std::uint32_t maker(std::string const& file_name) {
  std::uint32_t pid = 0;
  if (file_name.starts_with(".new-"))
    std::from_chars(file_name.data() + 5, file_name.data() + file_name.size(), pid);
  return pid;
}

bool is_dead(std::string const& run_dir, std::string const& job, collector who) {
  std::error_code failed;
  if (who != collector::command && fs::exists(job_dir(run_dir, job) + "/job.json", failed))
    return false;
  try {
    life_facts f = facts_of(*mapping::open(segment_path(run_dir, job)));
    f.is_held = fs::exists(held_path(run_dir, job), failed);
    return !is_used(f);
  } catch (error const&) {
    return false;  // another version's or somebody else's: not ours to remove
  }
}

}  // namespace

std::uint64_t own_pid_space() {
  struct stat st = {};
  return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

std::vector<live_process> live_processes(foreign<abi::segment> const& s, std::int64_t owner) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::vector<live_process> found;
  std::uint64_t const space = own_pid_space();
  for (std::uint32_t i = 0; i < abi::process_slots; ++i) {
    foreign<abi::process_slot> const& slot = abi::process_of(s, i);
    std::uint32_t const pid = slot.pid.load(std::memory_order_acquire);
    if (pid == 0) continue;
    std::uint64_t const slot_space = slot.pid_space.load(relaxed);
    if (slot_space != 0 && slot_space != space) {
      found.push_back({i, 0, name_of(slot)});
      continue;
    }
    std::uint64_t const now = start_ticks(pid);
    std::uint64_t const then = slot.start_ticks.load(relaxed);
    if (now != 0 && abi::is_start(then, now) &&
        (owner == any_owner || is_owned(uid_of(pid), static_cast<std::uint32_t>(owner))))
      found.push_back({i, pid, name_of(slot)});
  }
  return found;
}

life_facts facts_of(foreign<abi::segment> const& s) {
  life_facts f;
  std::uint64_t const holder = s.head.holder.load(std::memory_order_relaxed);
  f.has_joiner = abi::is_holder(holder, start_ticks(static_cast<std::uint32_t>(holder)));
  f.has_process = !live_processes(s).empty();
  return f;
}

std::vector<std::string> list_jobs(std::string const& run_dir) {
  std::vector<std::string> names;
  std::error_code failed;
  for (auto const& entry : fs::directory_iterator(jobs_dir(run_dir), failed)) {
    std::string name = entry.path().filename();
    if (name[0] != '.') names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void remove_job(std::string const& run_dir, std::string const& job) {
  // Out of sight in one step, so that nobody finds a job without its library.
  std::string const gone = jobs_dir(run_dir) + "/.new-" + std::to_string(getpid());
  std::error_code ignored;
  fs::remove_all(gone, ignored);
  if (std::rename(job_dir(run_dir, job).c_str(), gone.c_str()) == 0) fs::remove_all(gone, ignored);
}

void collect_garbage(std::string const& run_dir, collector who) {
  std::error_code failed;
  std::vector<fs::path> half_made;
  for (auto const& entry : fs::directory_iterator(jobs_dir(run_dir), failed)) {
    std::uint32_t const pid = maker(entry.path().filename());
    bool const is_ours =
        pid == static_cast<std::uint32_t>(getpid()) && who != collector::beside_daemon;
    if (pid != 0 && (is_ours || start_ticks(pid) == 0)) half_made.push_back(entry.path());
  }
  for (auto const& path : half_made) fs::remove_all(path, failed);
  for (auto const& job : list_jobs(run_dir))
    if (is_dead(run_dir, job, who)) remove_job(run_dir, job);
}

void collect_garbage_if_free(std::string const& run_dir) {
  descriptor const lock(
      open((run_dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) == 0)
    collect_garbage(run_dir, collector::beside_daemon);
}

}  // namespace sluice::segment
