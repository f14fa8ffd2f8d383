// SPDX-License-Identifier: Apache-2.0
// build: -Wl,-z,now
// fork_cost DIR CALLS CHILDREN: page faults of a child of fork whose parent has done the same many
// times. `opens` opens and closes a file, `speaks` writes into a pipe. Prints the least of all
// children: what else the kernel does meanwhile only adds to it, and so does a call that is timed.
// Its functions are bound at the start: how the loader compares their names is not of interest
// here.
#include "check.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>

namespace {

int pipes[2];

void work(std::string const& calls, std::string const& file) {
  char byte = 'x';
  if (calls == "opens") {
    int const fd = open(file.c_str(), O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
  } else {
    CHECK(write(pipes[1], &byte, 1) == 1);
  }
}

long faults_of_child(std::string const& calls, std::string const& file) {
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    work(calls, file);
    _exit(0);
  }
  int status = 0;
  rusage used = {};
  CHECK(wait4(child, &status, 0, &used) == child && status == 0);
  return used.ru_minflt;
}

}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/fork_cost";
  CHECK(argc == 4);
  close(make_file(file));
  CHECK(pipe(pipes) == 0);
  for (int i = 0; i < 1000; ++i) work(argv[2], file);
  long least = faults_of_child(argv[2], file);
  for (int left = atoi(argv[3]); left > 1; --left) {
    work(argv[2], file);
    least = std::min(least, faults_of_child(argv[2], file));
  }
  printf("%ld\n", least);
  return 0;
}
