// SPDX-License-Identifier: Apache-2.0
// A program that answers its system calls itself, as emulators do (PR_SET_SYSCALL_USER_DISPATCH).
// It writes the numbers of those that it was asked for: they are its own, and no others.
#include "check.h"

#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

namespace {

constexpr char lets_through = 0, asks = 1;
volatile char selector = lets_through;
volatile int asked[64];
volatile unsigned count = 0;

void answer(int, siginfo_t* what, void* context) {
  selector = lets_through;
  if (count < sizeof asked / sizeof *asked) asked[count] = what->si_syscall;
  count = count + 1;
  auto& regs = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  auto* const r = regs.gregs;
  long const result = syscall(what->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10]);
  r[REG_RAX] = result < 0 ? -errno : result;
#else
  auto* const r = regs.regs;
  long const result = syscall(what->si_syscall, r[0], r[1], r[2], r[3]);
  r[0] = static_cast<unsigned long long>(result < 0 ? -errno : result);
#endif
}

template <class Call>
auto ask(Call&& call) {
  selector = asks;
  auto const result = call();
  selector = lets_through;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/dispatched";
  close(make_file(file));
  struct sigaction act = {};
  act.sa_sigaction = answer;
  act.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGSYS, &act, nullptr) == 0);
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) != 0) return 77;
  char byte;
  int const fd = ask([&] { return open(file.c_str(), O_RDONLY); });
  CHECK(fd >= 0);
  CHECK(ask([&] { return pread(fd, &byte, 1, 0); }) >= 0);
  CHECK(ask([&] { return access(file.c_str(), R_OK); }) == 0);
  CHECK(ask([&] { return close(fd); }) == 0);
  for (unsigned i = 0; i < count; ++i) printf("%d\n", asked[i]);
}
