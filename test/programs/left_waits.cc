// SPDX-License-Identifier: Apache-2.0
// left_waits HOW DIR: threads that wait for an open leave without making it, 60 in all, and then
// one open is made. HOW: jumped, by siglongjmp out of a handler; killed, as children, of which half
// are never waited for; cancelled; exited, with a process that ends while they wait. Runs under a
// limit of opens; nothing is printed.
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "libinterpose/abi/segment.h"

namespace {
constexpr int all = 60;
std::string file;
sluice::abi::segment const* shown;

void open_once() {
  int const fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0 && close(fd) == 0);
}

void find_segment() {
  char const* const preload = getenv("LD_PRELOAD");
  CHECK(preload != nullptr);
  std::string const library = preload;
  std::string const name = library.substr(0, library.rfind('/')) + "/segment";
  int const fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at = mmap(nullptr, sizeof *shown, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && close(fd) == 0);
  shown = static_cast<sluice::abi::segment const*>(at);
}

int waiters() {
  int n = 0;
  for (auto const& shard : shown->owned) n += shard.waiting.channel.load() != 0;
  return n;
}

// Whoever passes meanwhile comes back.
void await_waiters(int n) {
  while (waiters() != n) nap_ms(5);
}

sigjmp_buf back;
std::atomic<int> jumps;
void jump(int) { siglongjmp(back, 1); }

// Each wait is told by when it began: the record of the one before stands until then.
void interrupt_waits(pthread_t who) {
  std::uint64_t last_ns = 0;
  for (int sent = 0; sent < all; ++sent) {
    auto const& shard = shown->owned[0].waiting;
    while (shard.channel.load() == 0 || shard.since_ns.load() == last_ns) nap_ms(1);
    last_ns = shard.since_ns.load();
    CHECK(pthread_kill(who, SIGUSR1) == 0);
    while (jumps.load() == sent) nap_ms(1);
  }
}

void leave_by_jumps() {
  CHECK(signal(SIGUSR1, jump) != SIG_ERR);
  std::thread other(interrupt_waits, pthread_self());
  if (sigsetjmp(back, 1) != 0) ++jumps;
  while (jumps.load() < all) open_once();
  other.join();
}

void leave_killed() {
  std::vector<pid_t> children;
  for (int i = 0; i < all; ++i) {
    pid_t const child = fork();
    CHECK(child >= 0);
    while (child == 0) open_once();
    children.push_back(child);
  }
  await_waiters(all);
  for (pid_t const child : children) CHECK(kill(child, SIGKILL) == 0);
  for (int i = 0; i < all; ++i) {
    siginfo_t told;
    int const keep = i < all / 2 ? WNOWAIT : 0;
    CHECK(waitid(P_PID, static_cast<id_t>(children[i]), &told, WEXITED | keep) == 0);
  }
}

void* open_in_thread(void*) {
  for (;;) open_once();
}

std::vector<pthread_t> begin_threads() {
  std::vector<pthread_t> threads(all);
  for (pthread_t& t : threads) CHECK(pthread_create(&t, nullptr, open_in_thread, nullptr) == 0);
  await_waiters(all);
  return threads;
}

void leave_cancelled() {
  std::vector<pthread_t> const threads = begin_threads();
  for (pthread_t const t : threads) CHECK(pthread_cancel(t) == 0);
  for (pthread_t const t : threads) {
    void* result = nullptr;
    CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
  }
}

void leave_by_exit() {
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    begin_threads();
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  std::string const how = argv[1];
  file = std::string(argv[2]) + "/file";
  find_segment();
  open_once();  // what idle time was worth
  if (how == "jumped") leave_by_jumps();
  if (how == "killed") leave_killed();
  if (how == "cancelled") leave_cancelled();
  if (how == "exited") leave_by_exit();
  open_once();
  return 0;
}
