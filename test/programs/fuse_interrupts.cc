// SPDX-License-Identifier: Apache-2.0
// fuse_interrupts DIR: mounts a FUSE file system with one file, `file`, over DIR and serves it. Who
// opens or cuts that waits until a signal comes, and has EINTR then. From then on the server
// answers nothing.
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/uio.h>

#include "check.h"

namespace {

constexpr uint64_t file_node = 2;

struct request {
  fuse_in_header head;
  char rest[128 << 10];
};

void reply(int fuse, uint64_t unique, int error, void const* from = nullptr, size_t size = 0) {
  fuse_out_header head = {static_cast<uint32_t>(sizeof head + size), -error, unique};
  iovec const parts[] = {{&head, sizeof head}, {const_cast<void*>(from), size}};
  CHECK(writev(fuse, parts, 2) == static_cast<ssize_t>(head.len));
}

fuse_attr attributes_of(uint64_t node) {
  fuse_attr a = {};
  a.ino = node;
  a.nlink = 1;
  a.mode = node == file_node ? S_IFREG | 0644 : S_IFDIR | 0755;
  return a;
}

void greet(int fuse, uint64_t unique) {
  fuse_init_out mine = {};
  mine.major = FUSE_KERNEL_VERSION, mine.minor = FUSE_KERNEL_MINOR_VERSION;
  mine.max_write = 4096;
  reply(fuse, unique, 0, &mine, sizeof mine);
}

void find(int fuse, request const& r) {
  fuse_entry_out found = {};
  found.nodeid = file_node;
  found.attr = attributes_of(file_node);
  if (strcmp(r.rest, "file") != 0) return reply(fuse, r.head.unique, ENOENT);
  reply(fuse, r.head.unique, 0, &found, sizeof found);
}

void tell_attributes(int fuse, request const& r) {
  fuse_attr_out found = {};
  found.attr = attributes_of(r.head.nodeid);
  reply(fuse, r.head.unique, 0, &found, sizeof found);
}

[[noreturn]] void serve(int fuse) {
  static request r;
  while (read(fuse, &r, sizeof r) > 0) switch (r.head.opcode) {
      case FUSE_INIT:
        greet(fuse, r.head.unique);
        break;
      case FUSE_LOOKUP:
        find(fuse, r);
        break;
      case FUSE_GETATTR:
        tell_attributes(fuse, r);
        break;
      case FUSE_OPEN:
      case FUSE_SETATTR:
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        break;
      case FUSE_INTERRUPT:
        reply(fuse, reinterpret_cast<fuse_interrupt_in const*>(r.rest)->unique, EINTR);
        for (;;) pause();
      default:
        reply(fuse, r.head.unique, ENOSYS);
    }
  exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  int const fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  CHECK(fuse >= 0);
  std::string const options =
      "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  CHECK(mount("interrupts", argv[1], "fuse.interrupts", MS_NOSUID | MS_NODEV, options.c_str()) ==
        0);
  serve(fuse);
}
