// SPDX-License-Identifier: Apache-2.0
// Walks that are under way at once in one thread. Prints how many entries each saw.
//   walks turns A B      nftw of A and of B, by turns, on stacks of their own
//   walks jumps A B      nftw of A; for each entry one of B, left by longjmp at its third entry
//   walks many A         more callbacks than there are places for, each of which sees A
#include <ftw.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <utility>

namespace {

ucontext_t top, walks[2];
bool is_over[2];
int seen[2];
char const* roots[2];
jmp_buf out;

template <int n>
int take_turns(char const*, struct stat const*, int, FTW*) {
  ++seen[n];
  swapcontext(&walks[n], &top);
  return 0;
}

template <int n>
void walk() {
  nftw(roots[n], take_turns<n>, 10, 0);
  is_over[n] = true;
}

void turns() {
  void (*const begin[])() = {walk<0>, walk<1>};
  for (int n = 0; n < 2; ++n) {
    getcontext(&walks[n]);
    walks[n].uc_stack.ss_sp = malloc(256 << 10);
    walks[n].uc_stack.ss_size = 256 << 10;
    walks[n].uc_link = &top;
    makecontext(&walks[n], begin[n], 0);
  }
  while (!is_over[0] || !is_over[1])
    for (int n = 0; n < 2; ++n)
      if (!is_over[n]) swapcontext(&top, &walks[n]);
}

int inner(char const*, struct stat const*, int) {
  if (++seen[1] % 3 == 0) longjmp(out, 1);
  return 0;
}

int outer(char const*, struct stat const*, int, FTW*) {
  ++seen[0];
  if (setjmp(out) == 0) ftw(roots[1], inner, 4);
  return 0;
}

template <int n>
int one_of_many(char const*, struct stat const*, int, FTW*) {
  seen[0] += n;
  return 0;
}

template <int... n>
void many(std::integer_sequence<int, n...>) {
  (nftw(roots[0], one_of_many<n>, 4, FTW_CHDIR), ...);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  roots[0] = argv[2];
  roots[1] = argv[argc - 1];
  if (strcmp(argv[1], "turns") == 0) turns();
  if (strcmp(argv[1], "jumps") == 0) nftw(roots[0], outer, 10, 0);
  if (strcmp(argv[1], "many") == 0) many(std::make_integer_sequence<int, 40>());
  printf("%d %d\n", seen[0], seen[1]);
  return 0;
}
