// SPDX-License-Identifier: Apache-2.0
// build: -static
// flip_words FOLDER SEED: what a hostile user does with the memory of his own job. No library is
// loaded into it. Two threads write garbage into words of segment, order, after and paths, as fast
// as they can, and put back what was there: what was good when it was checked is bad when it is
// used. Most of it goes to heads, and to the rules that whoever explains a limit follows.
#include <sys/mman.h>
#include <sys/stat.h>

#include <random>
#include <thread>
#include <vector>

#include "abi/segment.h"
#include "check.h"

namespace {

struct area {
  uint32_t volatile* words;
  std::vector<size_t> busy;  // words that are flipped most
  size_t count;
};

/// Where names and numbers of channels lie that whoever explains a limit follows.
std::vector<size_t> followed() {
  std::vector<size_t> at;
  auto const add = [&](size_t from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4) at.push_back((from + i) / 4);
  };
  size_t const rules = offsetof(sluice::abi::segment, rules);
  add(rules, 8 * 4);
  for (size_t i = 0; i < 2; ++i) {
    using sluice::core::ruleset;
    add(rules + offsetof(ruleset, channel) + i * sizeof(sluice::core::channel_row), 16);
    add(rules + offsetof(ruleset, rule) + i * sizeof(sluice::core::rule_row),
        sizeof(sluice::core::rule_row));
    add(rules + offsetof(ruleset, target) + (i + 1) * sizeof(sluice::core::target_row), 16);
  }
  return at;
}

area map(std::string const& path) {
  int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat st = {};
  CHECK(fd >= 0 && fstat(fd, &st) == 0);
  auto const bytes = static_cast<size_t>(st.st_size);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  area a = {static_cast<uint32_t volatile*>(at), {}, bytes / 4};
  for (size_t i = 0; i < 64; ++i) a.busy.push_back(i);
  return a;
}

void spin_ns(long ns) {
  double const end = now_s() + double(ns) / 1e9;
  while (now_s() < end) {
  }
}

[[noreturn]] void flip(std::vector<area> const& all, unsigned seed) {
  std::mt19937 random(seed);
  for (;;) {
    area const& a = all[random() % 4 != 0 ? 0 : random() % all.size()];
    bool const is_busy = random() % 8 != 0;
    size_t const at = is_busy ? a.busy[random() % a.busy.size()] : random() % a.count;
    if (at % 2 != seed % 2) continue;  // the other thread's, or garbage would be put back
    uint32_t const was = a.words[at];
    uint32_t const bad[] = {0xffffffff, 0x7fff0000, 0x80000000, uint32_t(random()), was + 1, 0};
    for (uint32_t const value : bad) {
      a.words[at] = value;
      spin_ns(long(random() % 8000));
    }
    a.words[at] = was;
    // Most of the time all is as it should be, or nothing would get past the first check.
    spin_ns(long(random() % 60000));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  std::vector<area> all;
  for (char const* name : {"segment", "order", "after", "paths"})
    all.push_back(map(std::string(argv[1]) + "/" + name));
  all[0].busy = followed();
  auto const seed = static_cast<unsigned>(atoi(argv[2]));
  std::thread other(flip, all, seed + 1);
  puts("flips");
  fflush(stdout);
  flip(all, seed);
}
