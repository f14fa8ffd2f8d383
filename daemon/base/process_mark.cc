// SPDX-License-Identifier: Apache-2.0
#include "base/process_mark.h"

#include <fstream>
#include <sstream>
#include <string>

namespace sluice {

std::uint64_t start_ticks(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;
  auto const name_end = line.rfind(')');  // the name may hold blanks and parentheses
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  std::string state, skipped;
  rest >> state;
  if (state == "Z" || state == "X") return 0;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  std::uint64_t ticks = 0;
  rest >> ticks;
  return ticks;
}

process_mark mark_of(std::uint32_t pid) { return {pid, start_ticks(pid)}; }

bool is_alive(process_mark const& p) {
  return p.pid != 0 && p.start_ticks != 0 && start_ticks(p.pid) == p.start_ticks;
}

}  // namespace sluice
