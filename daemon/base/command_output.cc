// SPDX-License-Identifier: Apache-2.0
#include "base/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/clock.h"

namespace sluice {

namespace {

/// errno, or 0.
int start(std::vector<std::string> const& words, int output, bool with_errors, pid_t& child) {
  std::vector<char*> argv;
  for (auto const& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  if (with_errors) posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int const why = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return why;
}

/// Waits until there is something to read; false when the time is over.
bool is_readable(int fd, std::int64_t longest_ns, std::int64_t begun_ns) {
  pollfd one = {fd, POLLIN, 0};
  if (longest_ns == 0) return poll(&one, 1, -1) != 0;
  std::int64_t const left_ms = (begun_ns + longest_ns - steady_ns() + 999'999) / 1'000'000;
  return left_ms > 0 && poll(&one, 1, static_cast<int>(std::min<long>(left_ms, 3'600'000))) != 0;
}

void read_all(int fd, command_bounds const& bounds, command_output& out) {
  std::int64_t const begun_ns = steady_ns();
  char chunk[1 << 16];
  while (out.text.size() < bounds.most_bytes && is_readable(fd, bounds.longest_ns, begun_ns)) {
    ssize_t const got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    out.is_whole = got <= 0;
    if (out.is_whole) return;
    out.text.append(chunk, static_cast<std::size_t>(got));
  }
}

}  // namespace

command_output output_of(std::vector<std::string> const& words, command_bounds const& bounds) {
  command_output out;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    out.start_error = errno;
    return out;
  }
  pid_t child = 0;
  out.start_error = start(words, ends[1], bounds.with_errors, child);
  close(ends[1]);
  if (out.start_error == 0) read_all(ends[0], bounds, out);
  close(ends[0]);
  if (out.start_error != 0) return out;
  if (!out.is_whole) kill(child, SIGKILL);
  while (waitpid(child, &out.status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

}  // namespace sluice
