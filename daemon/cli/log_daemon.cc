// SPDX-License-Identifier: Apache-2.0
// In a session of its own, so that Ctrl-C reaches the program and not the log behind it; with a
// death signal, so that it empties its log when we are killed. It gets standard error, the pipe it
// says "ready" on, and nothing else.
#include "cli/log_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "abi/order_area.h"
#include "cli/beside.h"
#include "policy/error.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

constexpr std::int64_t look_ns = 200'000'000;
constexpr std::int64_t pause_ns = 1'000'000'000;  // before it is started again
constexpr int most_deaths = 5;
constexpr int ready_fd = 3;
constexpr int patience_ms = 60'000;  // all may have to go home

[[noreturn]] void become_daemon(char const* const* argv, int ready, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_sluice);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int sig = 1; sig < 32; ++sig) signal(sig, SIG_DFL);
  int const nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  dup2(ready, ready_fd);
  close_range(ready_fd + 1, ~0u, 0);
  execv(argv[0], const_cast<char* const*>(argv));
  _exit(exit_missing);
}

/// The end of a child within some time. False: it still runs.
bool wait_for_end(pid_t pid, int& status, int patience) {
  for (int waited = 0; waited < patience; waited += 5) {
    pid_t const got = waitpid(pid, &status, WNOHANG);
    if (got == pid || (got < 0 && errno == ECHILD)) return true;
    timespec const nap = {0, 5'000'000};
    nanosleep(&nap, nullptr);
  }
  return false;
}

/// 0 where there is no area.
std::uint32_t durable_targets(std::string const& area) {
  descriptor const fd(open(area.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::uint32_t mask = 0;
  off_t const at = offsetof(abi::order_header, durable_targets);
  return fd && pread(fd.get(), &mask, sizeof mask, at) == ssize_t(sizeof mask) ? mask : 0;
}

}  // namespace

std::unique_ptr<log_daemon> serve_log(abi::segment const& s, std::string const& segment_path,
                                      std::string const& log) {
  std::string const area = segment::order_path(segment_path);
  std::uint32_t const targets = durable_targets(area);
  if (targets == 0) {
    if (!log.empty()) throw usage_error("--order-log: no target is durable; see --order");
    return nullptr;
  }
  std::string file = log;
  if (file.empty()) {
    auto const first = static_cast<unsigned>(std::countr_zero(targets));
    file = std::string(core::view(s.rules, s.rules.target[first].path)) + "/.sluice-order.log";
  }
  return std::make_unique<log_daemon>(area, std::filesystem::absolute(file), log.empty());
}

log_daemon::log_daemon(std::string area, std::string log, bool remove_log)
    : program_(find_beside("sluice-order")),
      area_(std::move(area)),
      log_(std::move(log)),
      remove_log_(remove_log) {
  if (program_.empty())
    throw sluice_error("--order: sluice-order is not beside sluice; it is installed with it");
  start();
  if (is_ready()) return;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  throw sluice_error(fmt::format("--order: the log daemon for {} does not start{}", log_,
                                 WIFSIGNALED(status)
                                     ? fmt::format(" (signal {})", WTERMSIG(status))
                                     : fmt::format(" (status {})", WEXITSTATUS(status))));
}

/// Waits until it says so, or has ended.
bool log_daemon::is_ready() const {
  char word = 0;
  ssize_t got = 0;
  while ((got = read(ready_.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

void log_daemon::start() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0)
    throw sluice_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::string const fd = std::to_string(ready_fd);
  char const* const argv[] = {program_.c_str(), "serve",      "--area",   area_.c_str(), "--log",
                              log_.c_str(),     "--ready-fd", fd.c_str(), nullptr};
  pid_t const self = getpid();
  pid_ = fork();
  if (pid_ == 0) become_daemon(argv, ready[1], self);
  int const why = errno;
  close(ready[1]);
  ready_ = descriptor(ready[0]);
  if (pid_ > 0) return;
  pid_ = 0;
  throw sluice_error(fmt::format("fork: {}", std::strerror(why)));
}

void log_daemon::say_how_it_ended(int status) const {
  fmt::print(stderr, "sluice: warning: the log daemon ended ({} {}): fsync is native {}\n",
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             deaths_ < most_deaths ? "until it is back" : "from now on");
}

std::int64_t log_daemon::look(std::int64_t now_ns) {
  int status = 0;
  if (pid_ != 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = 0;
    ++deaths_;
    again_ns_ = now_ns + pause_ns;
    say_how_it_ended(status);
  }
  if (pid_ == 0 && deaths_ < most_deaths && now_ns >= again_ns_) start();
  return now_ns + look_ns;
}

log_daemon::~log_daemon() {
  try {
    // One that died left records behind: a new one brings them home.
    if (pid_ == 0 && deaths_ != 0) {
      start();
      is_ready();
    }
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    int status = 0;
    if (!wait_for_end(pid_, status, patience_ms))
      fmt::print(stderr, "sluice: warning: the log daemon (pid {}) is still emptying {}\n", pid_,
                 log_);
    else if (status != 0)
      fmt::print(stderr, "sluice: warning: the log {} was not emptied: run `sluice recover {}`\n",
                 log_, log_);
    else if (remove_log_)
      unlink(log_.c_str());
  } catch (std::exception const& e) {
    fmt::print(stderr, "sluice: warning: {}\n", e.what());
  }
}

}  // namespace sluice::cli
