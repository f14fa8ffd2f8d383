// SPDX-License-Identifier: Apache-2.0
// build: -static
// lying_words SEGMENT WHAT: what a user writes into the memory of his own job, for root to read.
//   name          commands to a terminal and a line of its own, as the job and its first limit
//   process PID   a process of somebody else, as one of the job's
//   limits COUNT  so many channels; prints how many there were
//   calls COUNT   so many calls of each kind, in one thread
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "abi/segment.h"
#include "check.h"

namespace {

using sluice::abi::segment;

constexpr char told[] = "x\033]0;OWNED\a\n  FORGED";

segment& map(char const* path) {
  int const fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at = mmap(nullptr, sizeof(segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  return *static_cast<segment*>(at);
}

void tell_name(segment& s) {
  std::memcpy(s.head.job, told, sizeof told);
  sluice::core::text const& name = s.rules.channel[0].name;
  CHECK(name.length >= 4);
  std::memcpy(s.rules.strings + name.offset, "\033[1m", 4);
}

/// Field 22 of its stat, after the name, which may have blanks.
std::uint64_t start_of(std::string const& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  std::string word;
  for (int i = 3; i <= 22; ++i) rest >> word;
  return std::stoull(word);
}

void tell_process(segment& s, std::string const& pid) {
  auto& slot = sluice::abi::process_of(s, sluice::abi::process_slots - 1);
  slot.start_ticks = start_of(pid);
  slot.pid_space = 0;
  slot.pid = static_cast<std::uint32_t>(std::stoul(pid));
}

void tell_calls(segment& s, std::uint64_t count) {
  s.head.commons_used.store(1);
  for (auto& call : s.common[0].call) call.calls.store(count);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  segment& s = map(argv[1]);
  std::string const what = argv[2];
  if (what == "name") {
    tell_name(s);
  } else if (what == "process") {
    tell_process(s, argv[3]);
  } else if (what == "calls") {
    tell_calls(s, std::stoull(argv[3]));
  } else {
    std::printf("%u\n", s.rules.channel_count);
    s.rules.channel_count = static_cast<std::uint32_t>(std::stoul(argv[3]));
  }
}
