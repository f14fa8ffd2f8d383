// SPDX-License-Identifier: Apache-2.0
#include "segment/log_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "policy/error.h"

namespace sluice::segment {

namespace {

constexpr int ready_fd = 3;

struct two_ends {
  descriptor from, to;
};

two_ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw sluice_error(fmt::format("pipe: {}", std::strerror(errno)));
  return {descriptor(ends[0]), descriptor(ends[1])};
}

/// `words` < 0: standard error stays what it is. Both were opened while 0 to 2 were, or are moved
/// out of the way of what is put there.
[[noreturn]] void become_log(char const* const* argv, int ready, int words, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_sluice);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int sig = 1; sig < 32; ++sig) signal(sig, SIG_DFL);
  ready = fcntl(ready, F_DUPFD_CLOEXEC, ready_fd + 1);
  if (words >= 0) words = fcntl(words, F_DUPFD_CLOEXEC, ready_fd + 1);
  int const nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  if (words >= 0) dup2(words, 2);
  dup2(ready, ready_fd);
  close_range(ready_fd + 1, ~0u, 0);
  execv(argv[0], const_cast<char* const*>(argv));
  _exit(exit_missing);
}

}  // namespace

log_process start_log(std::string const& program, std::vector<std::string> arguments,
                      bool keeps_words) {
  two_ends ready = make_pipe(), words;
  if (keeps_words) words = make_pipe();
  arguments.insert(arguments.begin(), {program, "serve"});
  arguments.insert(arguments.end(), {"--ready-fd", std::to_string(ready_fd)});
  std::vector<char const*> argv;
  for (auto const& word : arguments) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  pid_t const self = getpid();
  pid_t const pid = fork();
  if (pid == 0) become_log(argv.data(), ready.to.get(), words.to.get(), self);
  if (pid < 0) throw sluice_error(fmt::format("fork: {}", std::strerror(errno)));
  return {pid, std::move(ready.from), std::move(words.from)};
}

}  // namespace sluice::segment
