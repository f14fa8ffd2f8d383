// SPDX-License-Identifier: Apache-2.0
#include "runtime/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/whole_file.h"

namespace sluice::runtime {

namespace {

constexpr unsigned backlog_wanted = 4096;  // 2500 nodes that come back in one burst
constexpr rlim_t files_per_child = 4;      // a reconnecting child has up to three sockets at once
constexpr rlim_t files_per_job = 6;        // its segment, and areas beside it that are held
constexpr rlim_t files_own = 256;

error failed(std::string const& what) {
  return sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// /run is what the whole machine works with, and users can let the files of their jobs grow.
bool shares_memory(std::string const& run_dir) {
  struct stat all = {}, jobs = {};
  return stat(run_dir.c_str(), &all) == 0 && stat((run_dir + "/jobs").c_str(), &jobs) == 0 &&
         all.st_dev == jobs.st_dev;
}

std::uint64_t number_in(std::string const& file) {
  std::ifstream in(file);
  std::uint64_t n = 0;
  return in >> n ? n : 0;
}

constexpr int held = -2;

/// `held`: by another process. -1: `errno` says why.
int lock_file(std::string const& file) {
  int const fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int const why = errno;
    close(fd);
    errno = why;
    return why == EWOULDBLOCK ? held : -1;
  }
  std::string const pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    // The pid is for people; the lock holds without it (a full disk).
  }
  return fd;
}

std::string holder_of(std::string const& file) {
  std::uint64_t const pid = number_in(file);
  return pid == 0 ? "" : fmt::format(" (pid {})", pid);
}

}  // namespace

void make_dir(std::string const& dir, unsigned mode, std::string const& user) {
  std::error_code wrong;
  auto const above = std::filesystem::path(dir).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, wrong);
  if (mkdir(dir.c_str(), mode) != 0) {
    if (errno == EEXIST) return;
    throw failed("cannot make " + dir);
  }
  if (chmod(dir.c_str(), mode) != 0) throw failed(dir);
  if (user.empty()) return;
  passwd const* const row = getpwnam(user.c_str());
  if (row == nullptr || chown(dir.c_str(), row->pw_uid, row->pw_gid) != 0)
    throw failed(fmt::format("cannot give {} to {}", dir, user));
}

int lock_run_dir(std::string const& run_dir) {
  std::string const file = run_dir + "/sluiced.lock";
  int const fd = lock_file(file);
  if (fd == held)
    throw sluice_error(fmt::format("a sluiced{} serves {} already; choose another --run-dir",
                                   holder_of(file), run_dir));
  if (fd < 0) throw failed(file);
  return fd;
}

int lock_state_dir(std::string const& state_dir, std::string& trouble) {
  std::string const file = state_dir + "/state.lock";  // the run directory may be the same
  int const fd = lock_file(file);
  if (fd == held)
    throw sluice_error(
        fmt::format("a sluiced{} keeps its state in {} already; choose another --state-dir",
                    holder_of(file), state_dir));
  if (fd < 0) trouble = failed(file).what();
  return fd;
}

std::uint64_t next_incarnation(std::string const& state_dir, std::uint64_t realtime_ns,
                               std::string& trouble) {
  std::string const file = state_dir + "/incarnation";
  std::uint64_t const next = std::max(number_in(file) + 1, realtime_ns);
  try {
    if (!replace_file(file, fmt::format("{}\n", next), {.is_durable = true})) throw failed(file);
  } catch (error const& e) {
    trouble = e.what();
  }
  return next;
}

void check_clock() {
  // A kernel without time namespaces has no such file.
  std::ifstream offsets("/proc/self/timens_offsets");
  std::string clock;
  for (std::int64_t s = 0, ns = 0; offsets >> clock >> s >> ns;)
    if (s != 0 || ns != 0)
      throw sluice_error(fmt::format(
          "the {} clock of this time namespace is {} s beside the machine's, and other programs "
          "are known by the machine's: start the daemon outside of the namespace",
          clock, s));
}

std::vector<std::string> check_machine(config const& c, serves most) {
  std::vector<std::string> out;
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  rlim_t const wanted = files_own + files_per_job * most.jobs +
                        files_per_child * std::max<std::size_t>(most.children, 1);
  if (files.rlim_cur < wanted)
    out.push_back(
        fmt::format("at most {} files may be open, {} need {}: raise "
                    "RLIMIT_NOFILE (LimitNOFILE= of the unit)",
                    files.rlim_cur,
                    most.jobs != 0 ? fmt::format("{} jobs", most.jobs)
                                   : fmt::format("{} children", most.children),
                    wanted));
  if (c.role == role_kind::node && geteuid() == 0 && shares_memory(c.run_dir))
    out.push_back(
        fmt::format("{0}/jobs lies in the file system of {0}, and users can fill it: mount a tmpfs "
                    "there that has a size (run-sluice-jobs.mount)",
                    c.run_dir));
  if (c.role == role_kind::node) return out;
  for (char const* name : {"core/somaxconn", "ipv4/tcp_max_syn_backlog"}) {
    std::uint64_t const backlog = number_in(std::string("/proc/sys/net/") + name);
    if (backlog != 0 && backlog < backlog_wanted && most.children > backlog)
      out.push_back(
          fmt::format("/proc/sys/net/{} is {}: children that come back at once wait for "
                      "seconds, set it to {}",
                      name, backlog, backlog_wanted));
  }
  return out;
}

}  // namespace sluice::runtime
