// SPDX-License-Identifier: Apache-2.0
#include "segment/journal_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sluice::segment {

namespace {

constexpr int ready_fd = 3, sentinel_from_fd = 4, sentinel_to_fd = 5, free_fd = 6;

struct two_ends {
  descriptor from, to;
};

two_ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw sluice_error(fmt::format("pipe: {}", std::strerror(errno)));
  return {descriptor(ends[0]), descriptor(ends[1])};
}

/// What the child keeps. All are moved out of the way of what is put there. words < 0: standard
/// error stays what it is.
struct kept_open {
  int ready, words, sentinel_from, sentinel_to;
};

void stand_alone(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_sluice);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int sig = 1; sig < 32; ++sig) signal(sig, SIG_DFL);
}

[[noreturn]] void become_journal(char const* const* argv, kept_open kept, pid_t parent) {
  stand_alone(parent);
  for (int* fd : {&kept.ready, &kept.words, &kept.sentinel_from, &kept.sentinel_to})
    if (*fd >= 0) *fd = fcntl(*fd, F_DUPFD_CLOEXEC, free_fd);
  int const nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  if (kept.words >= 0) dup2(kept.words, 2);
  dup2(kept.ready, ready_fd);
  dup2(kept.sentinel_from, sentinel_from_fd);
  dup2(kept.sentinel_to, sentinel_to_fd);
  close_range(free_fd, ~0u, 0);
  execv(argv[0], const_cast<char* const*>(argv));
  _exit(exit_missing);
}

}  // namespace

sentinel_pair::sentinel_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw sluice_error(fmt::format("socketpair: {}", std::strerror(errno)));
  from = descriptor(ends[0]);
  to = descriptor(ends[1]);
}

journal_process start_journal(std::string const& program, std::vector<std::string> arguments,
                              sentinel_pair const& sentinel, bool keeps_words) {
  two_ends ready = make_pipe(), words;
  if (keeps_words) words = make_pipe();
  arguments.insert(arguments.begin(), {program, "serve"});
  arguments.insert(arguments.end(),
                   {"--ready-fd", std::to_string(ready_fd), "--sentinel-fds",
                    std::to_string(sentinel_from_fd), std::to_string(sentinel_to_fd)});
  std::vector<char const*> argv;
  for (auto const& word : arguments) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  pid_t const self = getpid();
  pid_t const pid = fork();
  if (pid == 0)
    become_journal(argv.data(),
                   {ready.to.get(), words.to.get(), sentinel.from.get(), sentinel.to.get()}, self);
  if (pid < 0) throw sluice_error(fmt::format("fork: {}", std::strerror(errno)));
  return {pid, std::move(ready.from), std::move(words.from)};
}

void recover_journal(std::string const& program, std::string const& file) {
  two_ends words = make_pipe();
  char const* const argv[] = {program.c_str(), "--quiet", "--set-aside", file.c_str(), nullptr};
  pid_t const self = getpid();
  pid_t const pid = fork();
  if (pid == 0) {
    stand_alone(self);
    int const nothing = open("/dev/null", O_RDWR);
    dup2(words.to.get(), 2);
    dup2(nothing, 0);
    dup2(nothing, 1);
    close_range(ready_fd, ~0u, 0);
    execv(argv[0], const_cast<char* const*>(argv));
    _exit(exit_missing);
  }
  if (pid < 0) throw sluice_error(fmt::format("fork: {}", std::strerror(errno)));
  words.to = {};
  std::string said;
  char some[1024];
  for (ssize_t got = 0; (got = read(words.from.get(), some, sizeof some)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) said.append(some, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  throw sluice_error(said.empty() ? fmt::format("{}: sluice-recover failed", file) : said);
}

}  // namespace sluice::segment
