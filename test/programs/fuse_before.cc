// SPDX-License-Identifier: Apache-2.0
// fuse_before DIR: mounts a FUSE file system over DIR, and writes a file that lies below it, by a
// descriptor that it has of before. Nobody has read a request of the kernel yet, so whoever looks
// up a name in DIR waits for ever.
#include <sys/mount.h>

#include "check.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  int const below = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK(below >= 0 && fchdir(below) == 0);
  CHECK(mkdirat(below, "sub", 0755) == 0 || errno == EEXIST);
  int const device = open("/dev/null", O_RDWR | O_CLOEXEC);  // the directory is known
  CHECK(device >= 0 && close(device) == 0);
  int const fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  CHECK(fuse >= 0);
  std::string const options =
      "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  CHECK(mount("before", argv[1], "fuse.before", MS_NOSUID | MS_NODEV, options.c_str()) == 0);
  nap_ms(1500);  // what was remembered of names is old then
  int const log = openat(below, "sub/log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(log >= 0 && write(log, "begun\n", 6) == 6 && close(log) == 0);
  CHECK(umount2(argv[1], MNT_DETACH) == 0);
  return 0;
}
