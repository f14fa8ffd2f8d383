// SPDX-License-Identifier: Apache-2.0
// gate_full DIR: gives a file the name of a manifest when no descriptor is free. It fails with EIO,
// or an answer was asked for.
#include "check.h"

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  close(make_file(dir + "/new"));
  int fd = -1;
  while ((fd = open("/dev/null", O_RDONLY)) >= 0) {
  }
  CHECK(errno == EMFILE);
  CHECK(open((dir + "/MANIFEST-2").c_str(), O_WRONLY | O_CREAT, 0600) == -1 && errno == EMFILE);
  int const r = rename((dir + "/new").c_str(), (dir + "/MANIFEST-1").c_str());
  CHECK(r == 0 || errno == EIO);
  return 0;
}
