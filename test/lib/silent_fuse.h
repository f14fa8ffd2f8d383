// SPDX-License-Identifier: Apache-2.0
// A file system of a user whose server is stopped: whoever asks it waits. Needs root, and mounts of
// our own (own_mounts.h).
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "base/descriptor.h"

namespace sluice::test {

class silent_fuse {
 public:
  /// Mounted over `dir`, by `user`.
  explicit silent_fuse(std::string dir, unsigned user = 0)
      : dir_(std::move(dir)), server_(open("/dev/fuse", O_RDWR)) {
    std::string const how =
        "fd=" + std::to_string(server_.get()) +
        ",rootmode=40000,group_id=0,allow_other,user_id=" + std::to_string(user);
    is_mounted_ = mount("fuse", dir_.c_str(), "fuse", 0, how.c_str()) == 0 && begin();
  }
  ~silent_fuse() { umount2(dir_.c_str(), MNT_DETACH); }
  silent_fuse(silent_fuse const&) = delete;
  silent_fuse& operator=(silent_fuse const&) = delete;

  bool is_mounted() const { return is_mounted_; }

  /// Whether `act` asked it anything. If so it is told at once that there is no server.
  template <class Act>
  bool is_asked_by(Act const& act) {
    descriptor const over(eventfd(0, EFD_CLOEXEC));
    std::thread runs([&] {
      act();
      eventfd_write(over.get(), 1);
    });
    pollfd both[] = {{over.get(), POLLIN, 0}, {server_.get(), POLLIN, 0}};
    poll(both, 2, -1);
    bool is_asked = both[1].revents != 0;
    if (is_asked) server_ = descriptor();
    runs.join();
    return is_asked;
  }

 private:
  bool begin() const {
    alignas(8) char asked[FUSE_MIN_READ_BUFFER];
    if (read(server_.get(), asked, sizeof asked) <= 0) return false;
    auto const* const head = reinterpret_cast<fuse_in_header const*>(asked);
    struct {
      fuse_out_header head = {};
      fuse_init_out init = {};
    } said;
    said.head.len = sizeof said;
    said.head.unique = head->unique;
    said.init.major = FUSE_KERNEL_VERSION;
    said.init.minor = FUSE_KERNEL_MINOR_VERSION;
    said.init.max_write = 4096;
    return head->opcode == FUSE_INIT && write(server_.get(), &said, sizeof said) == sizeof said;
  }

  std::string dir_;
  descriptor server_;
  bool is_mounted_ = false;
};

}  // namespace sluice::test
