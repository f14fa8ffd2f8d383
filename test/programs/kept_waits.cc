// SPDX-License-Identifier: Apache-2.0
// kept_waits HOW FILE RATE: waits that look as if their thread had left them go on, and each open
// is paid. HOW: fibers, that a timer switches while they wait, on stacks that lie side by side;
// stacked, the same on stacks within the thread's own; disarmed, with a handler that waits on a
// signal stack which the kernel does not tell of. Makes the opens of three seconds at RATE opens a
// second, and fails if they take less than two.
#include "check.h"

#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <vector>

namespace {

constexpr int fibers = 32;
constexpr std::size_t stack_bytes = 32 << 10;
constexpr unsigned auto_disarm = 1u << 31;  // SS_AUTODISARM

char const* file;
volatile int opens;
int all;
double began_s;
ucontext_t fiber[fibers];
volatile int running;

void open_once() {
  int const fd = open(file, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0 && close(fd) == 0);
  opens = opens + 1;
  if (opens < all) return;
  double const took_s = now_s() - began_s;
  if (took_s < 2) dprintf(2, "%d opens took %.2f s\n", all, took_s);
  _exit(took_s < 2 ? 1 : 0);
}

void begin_timer(long every_us, void (*handler)(int), int flags) {
  struct sigaction on = {};
  on.sa_handler = handler;
  on.sa_flags = SA_RESTART | flags;
  CHECK(sigaction(SIGALRM, &on, nullptr) == 0);
  itimerval const every = {{0, every_us}, {0, every_us}};
  CHECK(setitimer(ITIMER_REAL, &every, nullptr) == 0);
}

void mask_timer(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  CHECK(sigprocmask(how, &set, nullptr) == 0);
}

void run_next(int) {
  int const from = running, to = (from + 1) % fibers;
  running = to;
  swapcontext(&fiber[from], &fiber[to]);
}

void run_fiber() {
  mask_timer(SIG_UNBLOCK);
  for (;;) {
    open_once();
    mask_timer(SIG_BLOCK);
    run_next(0);
    mask_timer(SIG_UNBLOCK);
  }
}

void run_fibers(char* stacks) {
  for (int i = 0; i < fibers; ++i) {
    CHECK(getcontext(&fiber[i]) == 0);
    fiber[i].uc_stack.ss_sp = &stacks[std::size_t(i) * stack_bytes];
    fiber[i].uc_stack.ss_size = stack_bytes;
    makecontext(&fiber[i], run_fiber, 0);
  }
  mask_timer(SIG_BLOCK);
  begin_timer(3000, run_next, 0);
  setcontext(&fiber[0]);
}

void open_in_handler(int) { open_once(); }

// The signal stack lies above the frames that wait.
void run_disarmed() {
  char stack[stack_bytes];
  stack_t to = {};
  to.ss_sp = stack;
  to.ss_size = sizeof stack;
  to.ss_flags = static_cast<int>(auto_disarm);
  CHECK(sigaltstack(&to, nullptr) == 0);
  begin_timer(70'000, open_in_handler, SA_ONSTACK);
  for (;;) open_once();
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  std::string const how = argv[1];
  file = argv[2];
  all = 3 * atoi(argv[3]);
  began_s = now_s();
  if (how == "fibers") run_fibers(std::vector<char>(fibers * stack_bytes).data());
  char stacks[fibers * stack_bytes];
  if (how == "stacked") run_fibers(stacks);
  if (how == "disarmed") run_disarmed();
  return 2;
}
