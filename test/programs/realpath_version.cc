// SPDX-License-Identifier: Apache-2.0
// realpath has two versions: the one of GLIBC_2.2.5, which old binaries are bound to, refuses a
// null result buffer; the one of GLIBC_2.3 allocates it. Both keep their meaning.
#include "check.h"

extern "C" char* old_realpath(char const*, char*);
__asm__(".symver old_realpath, realpath@GLIBC_2.2.5");

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  char room[4096];
  for (int i = 0; i < 10; ++i) {
    errno = 0;
    CHECK(old_realpath(dir.c_str(), nullptr) == nullptr && errno == EINVAL);
    CHECK(old_realpath(dir.c_str(), room) == room);
    char* made = realpath(dir.c_str(), nullptr);
    CHECK(made && strcmp(made, room) == 0);
    free(made);
  }
  return 0;
}
