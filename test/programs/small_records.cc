// SPDX-License-Identifier: Apache-2.0
// small_records PATH SECONDS: threads write records to one descriptor, a handler that comes every
// 200 us writes some, too, and now and then it jumps out of what it interrupted. Every record whose
// write returned is in the file once, and those of one writer in their order.
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr unsigned writers = 4, handlers = 4;  // streams of the one and of the other
constexpr uint32_t mark = 0x5eed5eed;

struct record {
  uint32_t mark, stream, number, check;
};

int fd = -1;
thread_local unsigned own_stream = 0;
thread_local sigjmp_buf out;
thread_local std::atomic<bool> may_jump{false};
std::atomic<uint32_t> told[writers + handlers];  // records whose write returned
std::atomic<bool> is_over{false};

ssize_t put(unsigned stream, uint32_t number) {
  record const r = {mark, stream, number, mark ^ stream ^ number};
  return write(fd, &r, sizeof r);
}

void handle(int) {
  int const before = errno;
  thread_local uint32_t number = 0;
  unsigned const stream = writers + own_stream;
  if (number % 3 != 2) {
    CHECK(put(stream, number) == sizeof(record));
    told[stream].fetch_add(1);
  }
  bool const jumps = ++number % 50 == 0 && may_jump.load();
  errno = before;
  if (jumps) siglongjmp(out, 1);
}

void work(unsigned stream) {
  own_stream = stream;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  uint32_t volatile number = 0;
  while (!is_over.load()) {
    // What was jumped out of may be there, or not: its number is left out.
    if (sigsetjmp(out, 1) != 0) number = number + 1;
    may_jump.store(true);
    while (!is_over.load()) {
      CHECK(put(stream, number) == sizeof(record));
      number = number + 1;
    }
    may_jump.store(false);
  }
  told[stream].store(number);
}

std::map<uint32_t, std::vector<uint32_t>> records_of(char const* path) {
  std::map<uint32_t, std::vector<uint32_t>> found;
  FILE* const f = fopen(path, "r");
  CHECK(f != nullptr);
  record r;
  while (fread(&r, sizeof r, 1, f) == 1) {
    CHECK(r.mark == mark && r.check == (mark ^ r.stream ^ r.number));
    found[r.stream].push_back(r.number);
  }
  CHECK(feof(f) && ftell(f) % static_cast<long>(sizeof r) == 0);
  fclose(f);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  signal(SIGUSR1, handle);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::vector<std::thread> all;
  for (unsigned i = 0; i < writers; ++i) all.emplace_back(work, i);
  double const until = now_s() + atof(argv[2]);
  while (now_s() < until) {
    for (auto& t : all) pthread_kill(t.native_handle(), SIGUSR1);
    usleep(200);
  }
  is_over.store(true);
  for (auto& t : all) t.join();
  CHECK(close(fd) == 0);
  auto const found = records_of(argv[1]);
  for (unsigned stream = 0; stream < writers; ++stream) {
    auto const& numbers = found.at(stream);
    CHECK(std::is_sorted(numbers.begin(), numbers.end()));
    CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
    // Each jump may have left one out.
    CHECK(told[stream] - numbers.size() <= told[writers + stream] / 20 + 2);
  }
  for (unsigned stream = writers; stream < writers + handlers; ++stream)
    if (told[stream] != 0) CHECK(found.at(stream).size() == told[stream]);
  return 0;
}
