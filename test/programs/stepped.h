// SPDX-License-Identifier: Apache-2.0
// Interrupts the calling thread after a given number of instructions: a signal handler then runs at
// a place that no timer would ever hit. Handlers see step_at == 0 once their turn has come.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "check.h"

inline volatile long step_at, steps;
inline void (*at_step)();

// Of the code that a signal interrupted, or of the caller. Other machines run to the end unstopped.
inline __attribute__((always_inline)) void trace([[maybe_unused]] void* context,
                                                 [[maybe_unused]] bool on) {
#if defined(__x86_64__)
  if (context != nullptr)
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
  else if (on)
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
#endif
}

inline void on_trap(int, siginfo_t*, void* context) {
  steps = steps + 1;
  if (steps != step_at) return;
  trace(context, false);
  at_step();
}

inline void catch_steps(void (*what)()) {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  CHECK(sigaction(SIGTRAP, &action, nullptr) == 0);
  at_step = what;
}

/// Runs `body` and calls `at_step` before its instruction number `at`. False: it was shorter.
template <class Body>
bool interrupted(long at, Body&& body) {
  steps = 0;
  step_at = at;
  trace(nullptr, true);
  body();
  trace(nullptr, false);
  return steps >= at;
}
