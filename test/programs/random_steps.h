// SPDX-License-Identifier: Apache-2.0
// What programs share that make random steps and print what each returned, so that two runs with
// one seed can be compared (random_*.cc). And a second process, which is asked for things in turns
// with the first: a child, or one that somebody else runs and that listens at two FIFOs.
#pragma once

#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <random>
#include <vector>

#include "check.h"

extern char** environ;

inline uint64_t hash(char const* from, ssize_t n, uint64_t h = 14695981039346656037u) {
  for (ssize_t i = 0; i < n; ++i) h = (h ^ static_cast<unsigned char>(from[i])) * 1099511628211u;
  return h;
}

class random_steps {
 public:
  explicit random_steps(unsigned seed) : random_(seed) {}

 protected:
  size_t below(size_t limit) { return random_() % limit; }

  [[gnu::format(printf, 2, 3)]] void say(char const* format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
  }

  static long size_of(int of) {
    struct stat st;
    return fstat(of, &st) == 0 ? static_cast<long>(st.st_size) : -1;
  }

  std::string piece(size_t longest) {
    std::string out(1 + below(longest), ' ');
    for (char& c : out) c = static_cast<char>('a' + random_() % 26);
    return out;
  }

  void end_of(pid_t pid) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    say("child: %x", static_cast<unsigned>(status));
  }

  static std::vector<char*> shell_for(std::string& script) {
    static std::string sh = "/bin/sh", option = "-c";
    return {sh.data(), option.data(), script.data(), nullptr};
  }
  void by_vfork(std::string script) {
    auto argv = shell_for(script);
    fflush(stdout);
    pid_t const pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
      execve(argv[0], argv.data(), environ);
      _exit(99);
    }
    end_of(pid);
  }
  void by_spawn(std::string script) {
    auto argv = shell_for(script);
    pid_t pid = -1;
    fflush(stdout);
    CHECK(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
    end_of(pid);
  }

  std::mt19937 random_;
};

/// DIR SEED COUNT [TELL ANSWER], or DIR serve TELL ANSWER, which is the second process.
/// serve(dir, orders, answers, is_outside) answers; steps(dir, seed, orders, answers).run(count)
/// asks, and its last order ends the other one.
template <class Steps, class Serve>
int run_two(int argc, char** argv, Serve&& serve) {
  CHECK(argc == 4 || argc == 5 || argc == 6);
  std::string const dir = argv[1];
  if (argc == 5) {
    int const orders = open(argv[3], O_RDONLY | O_CLOEXEC);
    serve(dir, orders, open(argv[4], O_WRONLY | O_CLOEXEC), true);
    return 0;
  }
  static char buffer[1 << 22];  // nothing of it is written before the end
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  int orders = -1, answers = -1;
  pid_t pid = 0;
  if (argc == 6) {
    orders = open(argv[4], O_WRONLY | O_CLOEXEC);
    answers = open(argv[5], O_RDONLY | O_CLOEXEC);
  } else {
    int to[2], from[2];
    CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      close(to[1]);
      close(from[0]);
      serve(dir, to[0], from[1], false);
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    orders = to[1], answers = from[0];
  }
  Steps(dir, static_cast<unsigned>(atoi(argv[2])), orders, answers).run(atoi(argv[3]));
  if (pid != 0) CHECK(waitpid(pid, nullptr, 0) == pid);
  return 0;
}
