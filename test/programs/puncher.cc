// SPDX-License-Identifier: Apache-2.0
// build: -static
// puncher FOLDER COUNTS: what a hostile user does with the pages of his own job. No library is
// loaded into it. He maps his segment a thousand times, and takes its pages away again and again,
// in a thread of next to no processor time: busy processes have the one it is on. A page fault of
// anybody waits until he is done. COUNTS: a file that has the punches he has begun, and those that
// ended.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int mappings = 1000, busy_processes = 5;
constexpr size_t touched_bytes = 64 << 10, page = 4096;

struct counts {
  uint64_t volatile begun, ended;
};

void stay_on_one() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

void keep_it_busy() {
  for (int i = 0; i < busy_processes; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uint64_t volatile spun = 0;
    while (true) spun = spun + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  int const fd = open((std::string(argv[1]) + "/segment").c_str(), O_RDWR);
  int const told = open(argv[2], O_RDWR | O_CREAT, 0666);
  struct stat st = {};
  CHECK(fd >= 0 && fstat(fd, &st) == 0 && ftruncate(told, sizeof(counts)) == 0);
  auto* const of = static_cast<counts*>(
      mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, told, 0));
  CHECK(of != MAP_FAILED);
  std::vector<char volatile*> all;
  for (int i = 0; i < mappings; ++i) {
    void* const at = mmap(nullptr, touched_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    all.push_back(static_cast<char volatile*>(at));
  }
  std::atomic<bool> is_mapped = false;
  std::thread touches([&] {
    while (true) {
      for (char volatile* const at : all)
        for (size_t i = 0; i < touched_bytes; i += page) at[i];
      is_mapped = true;
      is_mapped.notify_one();
      is_mapped.wait(true);
    }
  });
  stay_on_one();
  keep_it_busy();
  sched_param const none = {};
  CHECK(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
  while (true) {
    is_mapped.wait(false);
    of->begun = of->begun + 1;
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size) == 0);
    of->ended = of->ended + 1;
    is_mapped = false;
    is_mapped.notify_one();
  }
}
