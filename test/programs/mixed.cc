// SPDX-License-Identifier: Apache-2.0
// A little of everything from three threads and a child: the guest for hosts that instrument the
// program (AddressSanitizer, ThreadSanitizer, valgrind), which the tests compile it for.
#include "check.h"

#include <dirent.h>
#include <sys/wait.h>

#include <thread>
#include <vector>

namespace {
void work(std::string const& dir, int number) {
  std::string const file = dir + "/mixed" + std::to_string(number);
  int const fd = make_file(file);
  char piece[64];
  for (int i = 0; i < 20; ++i) {
    struct stat s;
    CHECK(pread(fd, piece, sizeof piece, 0) == 64 && stat(file.c_str(), &s) == 0);
    FILE* f = fopen(file.c_str(), "r");
    CHECK(f && fread(piece, 1, 64, f) == 64 && fclose(f) == 0);
  }
  DIR* d = opendir(dir.c_str());
  CHECK(d && readdir(d) && closedir(d) == 0);
  CHECK(close(fd) == 0 && unlink(file.c_str()) == 0);
}
}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t) workers.emplace_back([&, t] { work(dir, t); });
  for (auto& w : workers) w.join();
  pid_t const child = fork();
  if (child == 0) {
    work(dir, 3);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
