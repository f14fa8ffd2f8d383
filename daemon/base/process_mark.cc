// SPDX-License-Identifier: Apache-2.0
#include "base/process_mark.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "base/descriptor.h"

namespace sluice {

namespace {

/// What follows the name, which may hold blanks and parentheses.
std::string stat_in(std::string const& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {};
  auto const name_end = line.rfind(')');
  return name_end == std::string::npos ? std::string() : line.substr(name_end + 1);
}

std::string threads_of(std::uint32_t pid) { return "/proc/" + std::to_string(pid) + "/task"; }

}  // namespace

std::string stat_path(std::uint32_t pid) {
  return threads_of(pid) + "/" + std::to_string(pid) + "/stat";
}

bool has_waiting_thread(std::uint32_t pid) {
  bool waits = false;
  std::error_code none;  // a thread may end meanwhile
  std::filesystem::directory_iterator threads(threads_of(pid), none);
  for (; !none && threads != std::filesystem::end(threads); threads.increment(none)) {
    char state = 0;
    std::istringstream(stat_in(threads->path().string() + "/stat")) >> state;
    if (state == 'T' || state == 't') return false;
    waits |= state == 'R' || state == 'D';
  }
  return waits;
}

std::uint32_t parent_of(std::uint32_t pid) {
  std::istringstream rest(stat_in(stat_path(pid)));
  char state = 0;
  std::uint32_t parent = 0;
  return rest >> state >> parent ? parent : 0;
}

std::uint64_t start_ticks(std::uint32_t pid) {
  std::istringstream rest(stat_in(stat_path(pid)));
  std::string state, skipped;
  unsigned threads = 0;
  std::uint64_t ticks = 0;
  rest >> state;
  for (int field = 4; field < 20; ++field) rest >> skipped;
  rest >> threads >> skipped >> ticks;
  // The first thread of a process may end long before the others.
  bool const is_over = (state == "Z" && threads <= 1) || state == "X";
  return is_over ? 0 : ticks;
}

bool has_ended(int fd) {
  pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, 0) > 0;
}

bool has_process_ended(std::uint32_t pid) {
  auto const number = static_cast<pid_t>(pid);
  if (number <= 0) return true;
  descriptor const process(static_cast<int>(syscall(SYS_pidfd_open, number, 0)));
  return process ? has_ended(process.get()) : kill(number, 0) != 0 && errno == ESRCH;
}

std::uint32_t uid_of(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream rest(line);
    std::string key;
    std::uint32_t real = no_uid;
    if (rest >> key && key == "Uid:" && rest >> real) return real;
  }
  return no_uid;
}

process_mark mark_of(std::uint32_t pid) { return {pid, start_ticks(pid)}; }

bool is_alive(process_mark const& p) {
  return p.pid != 0 && p.start_ticks != 0 && start_ticks(p.pid) == p.start_ticks;
}

}  // namespace sluice
