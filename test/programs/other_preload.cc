// SPDX-License-Identifier: Apache-2.0
// Another preloaded library wraps open too: its wrapper must see every open of the program.
#include "check.h"

#include <dlfcn.h>

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/other";
  close(make_file(file));
  auto const seen = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "opens_seen"));
  int const before = seen ? seen() : 0;
  for (int i = 0; i < 20; ++i) {
    int const fd = open(file.c_str(), O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
  }
  if (seen) CHECK(seen() - before == 20);
  return 0;
}
