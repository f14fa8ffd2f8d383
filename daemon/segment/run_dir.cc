// SPDX-License-Identifier: Apache-2.0
#include "segment/run_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/who_may_rename.h"

namespace sluice::segment {

std::string default_run_dir() {
  // `su` and `sudo -E` leave the user's to root.
  struct stat st = {};
  if (char const* dir = std::getenv("XDG_RUNTIME_DIR");
      dir != nullptr && *dir == '/' && stat(dir, &st) == 0 && st.st_uid == geteuid())
    return std::string(dir) + "/sluice";
  if (geteuid() == 0) return "/run/sluice";
  char const* home = std::getenv("HOME");
  if (home == nullptr || *home != '/')
    throw sluice_error("no run directory: set XDG_RUNTIME_DIR or use --run-dir");
  // A home directory is often shared by many nodes, and pids mean nothing on another node.
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0 || *host == 0) std::strcpy(host, "localhost");
  return std::string(home) + "/.cache/sluice/run/" + host;
}

std::vector<std::string> spare_run_dirs() {
  std::vector<std::string> out;
  auto const add = [&](std::string const& in) {
    out.push_back(in + "/sluice-" + std::to_string(geteuid()));
  };
  if (char const* in = std::getenv("TMPDIR"); in != nullptr && *in == '/') add(in);
  add("/dev/shm");
  return out;
}

namespace {

void make(std::string const& dir) {
  mode_t const before = umask(077);
  std::error_code failed;
  std::filesystem::create_directories(dir, failed);
  umask(before);
  if (failed) throw sluice_error(fmt::format("cannot make {}: {}", dir, failed.message()));
}

void check_ours(std::string const& dir) {
  struct stat st = {};
  if (lstat(dir.c_str(), &st) != 0)
    throw sluice_error(fmt::format("{}: {}", dir, std::strerror(errno)));
  if (!S_ISDIR(st.st_mode)) throw sluice_error(dir + " is not a directory");
  if (st.st_uid != geteuid())
    throw sluice_error(
        fmt::format("{} belongs to uid {}, not to us; choose another --run-dir", dir, st.st_uid));
  if ((st.st_mode & 022) != 0)
    throw sluice_error(
        fmt::format("{} can be written by others (mode {:o}); chmod go-w it, or "
                    "choose another --run-dir",
                    dir, st.st_mode & 07777));
}

/// Who may rename one of these may put another directory in our place.
void check_above(std::string const& dir) {
  for (std::filesystem::path at = dir; at != at.root_path();) {
    at = at.parent_path();
    struct stat st = {};
    if (lstat(at.c_str(), &st) != 0)
      throw sluice_error(fmt::format("{}: {}", at.string(), std::strerror(errno)));
    if (st.st_uid != geteuid() && !is_roots(st.st_uid, at.string()))
      throw sluice_error(
          fmt::format("{} lies below {}, which belongs to uid {}; choose another --run-dir", dir,
                      at.string(), st.st_uid));
    if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
      throw sluice_error(
          fmt::format("{} lies below {}, which can be written by others (mode {:o}); chmod go-w "
                      "it, or choose another --run-dir",
                      dir, at.string(), st.st_mode & 07777));
  }
}

}  // namespace

std::string run_dir(std::string const& wanted) {
  std::string const dir = wanted.empty() ? default_run_dir() : wanted;
  make(dir);
  std::unique_ptr<char, void (*)(void*)> const real(realpath(dir.c_str(), nullptr), std::free);
  if (!real) throw sluice_error(fmt::format("{}: {}", dir, std::strerror(errno)));
  std::string const canonical = real.get();
  if (canonical.find_first_of(" \t\n:$") != std::string::npos)
    throw sluice_error(
        fmt::format("run directory \"{}\": LD_PRELOAD cannot carry a name with a blank, "
                    "':' or '$'; choose another --run-dir",
                    canonical));
  check_ours(canonical);
  check_above(canonical);
  make(jobs_dir(canonical));
  check_ours(jobs_dir(canonical));
  return canonical;
}

namespace {

/// Nobody else can have made it, or can look into it.
bool is_private(std::string const& dir) {
  struct stat st = {};
  return lstat(dir.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0;
}

}  // namespace

std::string run_dir_somewhere() {
  try {
    return run_dir({});
  } catch (error const&) {
    for (auto const& dir : spare_run_dirs()) {
      if (mkdir(dir.c_str(), 0700) != 0 && !is_private(dir)) continue;
      try {
        return run_dir(dir);
      } catch (error const&) {
        // The next one.
      }
    }
    throw;
  }
}

std::string run_dir_if_there() {
  std::error_code failed;
  try {
    std::string const dir = default_run_dir();
    if (std::filesystem::is_directory(jobs_dir(dir), failed)) return run_dir(dir);
  } catch (error const&) {
    // No home.
  }
  for (auto const& dir : spare_run_dirs()) try {
      if (is_private(dir) && std::filesystem::is_directory(jobs_dir(dir), failed))
        return run_dir(dir);
    } catch (error const&) {
      // The next one.
    }
  return {};
}

void check_job_name(std::string const& job) {
  constexpr std::size_t most_bytes = 63;  // what a message of a daemon carries
  bool good = !job.empty() && job.size() <= most_bytes && job[0] != '.' && job[0] != '-';
  for (char c : job)
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-');
  if (!good)
    throw usage_error(
        fmt::format("job name \"{}\": use up to {} letters, digits, '.', '_' and '-', "
                    "beginning with a letter or digit",
                    job, most_bytes));
}

std::string jobs_dir(std::string const& run_dir) { return run_dir + "/jobs"; }
std::string journals_dir(std::string const& run_dir) { return run_dir + "/journals"; }

std::string own_links(std::string const& job_dir) {
  std::string const own = job_dir + "/" + own_links_name;
  return access(own.c_str(), F_OK) == 0 ? own : job_dir;
}

std::string job_dir(std::string const& run_dir, std::string const& job) {
  return jobs_dir(run_dir) + "/" + job;
}

std::string after_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/')) + "/after";
}

std::string order_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/')) + "/order";
}

std::string paths_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/')) + "/paths";
}

std::string roles_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/')) + "/roles";
}

std::string rings_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/')) + "/rings";
}

std::string held_path(std::string const& run_dir, std::string const& job) {
  return job_dir(run_dir, job) + "/held";
}

std::string segment_path(std::string const& run_dir, std::string const& job) {
  return job_dir(run_dir, job) + "/segment";
}

file_lock::file_lock(std::string const& path)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (fd_ < 0) throw sluice_error(fmt::format("{}: {}", path, std::strerror(errno)));
  while (flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    int const why = errno;
    close(fd_);
    throw sluice_error(fmt::format("cannot lock {}: {}", path, std::strerror(why)));
  }
}

file_lock::~file_lock() { close(fd_); }

}  // namespace sluice::segment
