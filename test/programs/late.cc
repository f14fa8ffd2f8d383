// SPDX-License-Identifier: Apache-2.0
// late DIR LIBRARY: loads a library that brings a function of its own under a name that the stage
// has too. Called through the stage, that function must be found, though it was not there when the
// program started.
#include "check.h"

#include <dlfcn.h>

int main(int argc, char** argv) {
  CHECK(argc == 3);
  std::string const file = folder(argc, argv) + "/late";
  close(make_file(file));
  void* const library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  auto const late_open = reinterpret_cast<int (*)(char const*)>(dlsym(library, "late_open"));
  CHECK(late_open);
  for (int i = 0; i < 10; ++i) {
    int const fd = late_open(file.c_str());
    CHECK(fd >= 0 && close(fd) == 0);
  }
  return 0;
}
