// SPDX-License-Identifier: Apache-2.0
// plugins DIR PLUGIN: loads the plug-in with RTLD_DEEPBIND and into a new namespace; both work, and
// so does the program afterwards.
#include "check.h"

#include <dlfcn.h>

int main(int argc, char** argv) {
  CHECK(argc == 3);
  int const fd = make_file(folder(argc, argv) + "/plugins");
  void* handles[] = {dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND),
                     dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL)};
  for (void* handle : handles) {
    CHECK(handle);
    auto const work = reinterpret_cast<int (*)(char const*)>(dlsym(handle, "plugin_work"));
    CHECK(work && work(argv[1]) == 0);
    char byte;
    for (int i = 0; i < 10; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
    CHECK(dlclose(handle) == 0);
  }
  return 0;
}
