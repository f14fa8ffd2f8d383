// SPDX-License-Identifier: Apache-2.0
// A file system whose disk refuses data from when it is told so, and whose journal goes on. Needs
// root and loop devices.
#pragma once

#include <string>
#include <utility>

#include "lib/own_mounts.h"

namespace sluice::test {

/// An ext4 in a file of a tmpfs without room: blocks that were free when it was closed take no
/// bytes until it is opened again. Some do all the same; those the ballast gets.
class refusing_disk {
 public:
  /// Below `holder`, mounted at `home`; neither `home` nor `holder`/under is there yet.
  refusing_disk(std::string const& holder, std::string home)
      : under_(holder + "/under"), image_(under_ + "/image"), home_(std::move(home)) {
    own_mounts();
    is_mounted_ =
        shell("mkdir " + under_ + " " + home_ + " && mount -t tmpfs -o size=48m none " + under_ +
              " && truncate -s 32M " + image_ + "0 && mkfs.ext4 -q -E nodiscard " + image_ +
              "0 && cp --sparse=never " + image_ + "0 " + image_ + " && rm " + image_ +
              "0 && mount -o loop " + image_ + " " + home_ + " && fallocate -l 6M " + home_ +
              "/beside && sync -f " + home_);  // new files lie far from what is in use
  }
  ~refusing_disk() {
    shell("umount -l " + home_);
    shell("umount -l " + under_);
  }
  refusing_disk(refusing_disk const&) = delete;
  refusing_disk& operator=(refusing_disk const&) = delete;

  bool is_mounted() const { return is_mounted_; }
  bool close() {
    return shell("fstrim " + home_ + " && cp /dev/zero " + under_ + "/full; dd if=/dev/zero of=" +
                 home_ + "/ballast bs=64k count=64 conv=fsync; true");
  }
  bool open_again() { return shell("rm " + under_ + "/full"); }
  bool mount_again() {
    return shell("umount " + home_ + " && mount -o loop " + image_ + " " + home_);
  }

 private:
  std::string const under_, image_, home_;
  bool is_mounted_ = false;
};

}  // namespace sluice::test
