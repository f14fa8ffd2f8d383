// SPDX-License-Identifier: Apache-2.0
// interrupted_open FILE WORD: does small I/O (WORD: `reads` or `strict`) on a file and opens and
// cuts it by its name, while a timer's handler without SA_RESTART runs. Natively no such call
// waits, so none ends with EINTR. It says `next` before each, and standard input answers with the
// pids of those who may make it wait: they are stopped before it, and go on after a few signals.
#include "check.h"

#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int enough = 5;
constexpr int most = 100'000;
std::vector<pid_t> keepers;
volatile sig_atomic_t handled = 0;

void on_alarm(int) {
  handled = handled + 1;
  if (handled == enough)
    for (pid_t const pid : keepers) kill(pid, SIGCONT);
}

bool is_running(pid_t pid) {
  char line[512] = {};
  int const fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  bool const is_there = fd >= 0 && read(fd, line, sizeof line - 1) > 0;
  close(fd);
  char const* const name_end = strrchr(line, ')');
  return is_there && name_end != nullptr && name_end[2] != 'T';
}

void stop_keepers() {
  for (pid_t const pid : keepers) {
    kill(pid, SIGSTOP);
    while (is_running(pid)) nap_ms(1);
  }
}

void run_timer(long every_us) {
  itimerval const timer = {{0, every_us}, {0, every_us}};
  CHECK(setitimer(ITIMER_REAL, &timer, nullptr) == 0);
}

/// All of them lie in the file.
void small_io(int fd, bool is_strict, int count) {
  char bytes[8] = {'1', '2', '3', '4', '5', '6', '7', '\n'};
  for (int i = 0; i < count; ++i)
    CHECK((is_strict ? write(fd, bytes, 8) : read(fd, bytes, 8)) == 8);
}

void ask_for_keepers() {
  puts("next");
  fflush(stdout);
  std::string line;
  CHECK(std::getline(std::cin, line).good());
  std::istringstream pids(line);
  keepers.clear();
  for (pid_t pid = 0; pids >> pid;) keepers.push_back(pid);
}

/// True: the call had to wait, or there is nobody to wait for.
template <class Call>
bool was_interrupted(std::string const& path, bool is_strict, int count, Call const& call) {
  ask_for_keepers();
  int const fd = open(path.c_str(), (is_strict ? O_WRONLY | O_APPEND : O_RDONLY) | O_CLOEXEC);
  CHECK(fd >= 0);
  small_io(fd, is_strict, count);
  struct stat st;
  CHECK(stat(path.c_str(), &st) == 0);  // nothing waits now, and the lease stays
  stop_keepers();
  handled = 0;
  run_timer(5'000);
  bool const is_done = call();
  int const why = errno;
  run_timer(0);
  for (pid_t const pid : keepers) kill(pid, SIGCONT);
  errno = why;
  CHECK(is_done);
  CHECK(close(fd) == 0);
  return keepers.empty() || handled >= enough;
}

/// Until it was: so few may not have been worth a lease, or the keepers were slow.
template <class Call>
void interrupted(std::string const& path, bool is_strict, Call const& call) {
  for (int count = 3000; !was_interrupted(path, is_strict, count, call);)
    count = std::min(2 * count, most);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  std::string const path = argv[1];
  bool const is_strict = argv[2][0] == 's';
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  CHECK(close(make_file(path, 16 * most)) == 0);
  interrupted(path, is_strict, [&] {
    int const other = open(path.c_str(), (is_strict ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    return other >= 0 && close(other) == 0;
  });
  interrupted(path, is_strict, [&] { return truncate(path.c_str(), 8 * most) == 0; });
  interrupted(path, is_strict, [&] {
    FILE* const f = fopen(path.c_str(), is_strict ? "r" : "r+");
    return f != nullptr && fclose(f) == 0;
  });
  return 0;
}
