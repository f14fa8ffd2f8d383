// SPDX-License-Identifier: Apache-2.0
// What we mount is ours alone. A namespace of mounts that another program makes meanwhile would get
// a copy of it, and hold the file system when we have long unmounted it.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace sluice::test {

/// Says nothing; true: status 0.
inline bool shell(std::string const& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

/// Call before other threads exist that look at mounts. Nothing happens without root.
inline void own_mounts() {
  if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
}

/// Makes `dir`, and an ext4 of `size` in the file `image`, mounted there. False: it cannot be done
/// here.
inline bool mount_ext4(std::string const& image, std::string const& size, std::string const& dir) {
  own_mounts();
  return shell("mkdir " + dir + " && truncate -s " + size + " " + image + " && mkfs.ext4 -q " +
               image + " && mount -o loop " + image + " " + dir);
}

}  // namespace sluice::test
