// SPDX-License-Identifier: Apache-2.0
// A handler on a small stack of its own does I/O by path and by fd. Below the stack lies a page
// that ends the program: what a wrapper needs there must be little.
#include "check.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>

namespace {
std::string file;
volatile sig_atomic_t handled;

void on_signal(int) {
  struct stat s;
  char byte;
  int const fd = open(file.c_str(), O_RDONLY);
  CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && fstat(fd, &s) == 0 && close(fd) == 0);
  int const other = open("small_relative", O_RDWR | O_CREAT, 0600);
  CHECK(other >= 0 && read(other, &byte, 1) == 0 && close(other) == 0);
  CHECK(stat(file.c_str(), &s) == 0 && rename(file.c_str(), file.c_str()) == 0);
  handled = handled + 1;
}
}  // namespace

int main(int argc, char** argv) {
  file = folder(argc, argv) + "/small_altstack";
  CHECK(chdir(folder(argc, argv).c_str()) == 0);
  close(make_file(file));
  // What the kernel puts there, and 4 KiB; the first symbols were resolved above, by ld.so.
  size_t const frame = std::max<size_t>(getauxval(AT_MINSIGSTKSZ), 2048);
  size_t const size = (frame + 4096 + 4095) & ~size_t{4095};
  char* const memory = static_cast<char*>(
      mmap(nullptr, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
  stack_t stack{};
  stack.ss_size = frame + 4096;
  stack.ss_sp = memory + 4096 + (size - stack.ss_size);
  CHECK(sigaltstack(&stack, nullptr) == 0);
  memory[4096] = 'x';
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  for (int i = 0; i < 5; ++i) CHECK(raise(SIGUSR1) == 0);
  CHECK(handled == 5);
  return 0;
}
