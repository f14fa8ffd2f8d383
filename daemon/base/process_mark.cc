// SPDX-License-Identifier: Apache-2.0
#include "base/process_mark.h"

#include <fstream>
#include <sstream>
#include <string>

namespace sluice {

namespace {

/// What follows the name, which may hold blanks and parentheses.
std::string stat_of(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  auto const name_end = line.rfind(')');
  return name_end == std::string::npos ? std::string() : line.substr(name_end + 1);
}

}  // namespace

char state_of(std::uint32_t pid) {
  std::istringstream rest(stat_of(pid));
  char state = 0;
  rest >> state;
  return rest ? state : char{0};
}

std::uint64_t start_ticks(std::uint32_t pid) {
  std::istringstream rest(stat_of(pid));
  std::string state, skipped;
  unsigned threads = 0;
  std::uint64_t ticks = 0;
  rest >> state;
  for (int field = 4; field < 20; ++field) rest >> skipped;
  rest >> threads >> skipped >> ticks;
  // The first thread of a process may end long before the others.
  bool const has_ended = (state == "Z" && threads <= 1) || state == "X";
  return has_ended ? 0 : ticks;
}

bool is_zombie(std::uint32_t pid) { return state_of(pid) == 'Z' && start_ticks(pid) == 0; }

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
