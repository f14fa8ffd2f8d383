// SPDX-License-Identifier: Apache-2.0
// Allocates and does file I/O from several threads at once, small and large pieces: for the
// allocators that are preloaded before and after us.
#include "check.h"

#include <thread>
#include <vector>

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t)
    workers.emplace_back([&, t] {
      std::string const file = dir + "/allocators" + std::to_string(t);
      int const fd = make_file(file);
      for (int i = 0; i < 50; ++i) {
        std::vector<char> piece(static_cast<size_t>(1) << (i % 22));
        struct stat s;
        CHECK(pread(fd, piece.data(), 1, 0) == 1 && stat(file.c_str(), &s) == 0);
        FILE* f = fopen(file.c_str(), "r");
        CHECK(f && getc(f) == 'x' && fclose(f) == 0);
      }
      CHECK(close(fd) == 0);
    });
  for (auto& w : workers) w.join();
  return 0;
}
