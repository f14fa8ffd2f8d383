// SPDX-License-Identifier: Apache-2.0
#include "mounts.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace sluice::crash {

namespace {

constexpr fs_kind kinds[] = {
    {"ext4", 64ull << 20, 160ull << 20,
     "mkfs.ext4 -q -F -J size=4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard",
     "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard", ""},
    {"xfs", 320ull << 20, 320ull << 20, "mkfs.xfs -q -f -K", "mkfs.xfs -q -f -K", ""},
    {"btrfs", 128ull << 20, 256ull << 20, "mkfs.btrfs -q -f -K", "mkfs.btrfs -q -f -K", ""},
};
fs_kind const& log_kind = kinds[0];

void make_fs(fs_kind const& kind, std::string const& device) {
  if (std::system((std::string(kind.make) + " " + device + " >/dev/null").c_str()) != 0)
    throw std::runtime_error("mkfs");
}

void mount_fs(fs_kind const& kind, std::string const& device, std::string const& at) {
  if (mount(device.c_str(), at.c_str(), kind.name, MS_NOATIME, kind.options) != 0)
    throw std::runtime_error(std::string("mount: ") + std::strerror(errno));
}

void unmount_fs(std::string const& at) {
  for (int i = 0; umount(at.c_str()) != 0; ++i) {
    if (i == 4000) throw std::runtime_error(std::string("umount: ") + std::strerror(errno));
    usleep(5000);
  }
}

}  // namespace

fs_kind const* find_fs(char const* name) {
  for (auto const& kind : kinds)
    if (std::strcmp(kind.name, name) == 0) return &kind;
  return nullptr;
}

void forget_devices() {
  int const control = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return;
  btrfs_ioctl_vol_args all = {};
  ioctl(control, BTRFS_IOC_FORGET_DEV, &all);
  close(control);
}

mounts::mounts(fs_kind const& kind, std::string const& scratch, std::uint64_t bytes,
               std::uint64_t log_bytes)
    : fs(kind),
      dir(scratch),
      mount_point(scratch + "/mnt"),
      disk(scratch + "/disk", bytes, {}, log_bytes) {}

void mounts::make() {
  disk.attach();
  make_fs(fs, disk.device());
  if (disk.has_log_disk()) {
    disk.attach(log_disk);
    make_fs(log_kind, disk.device(log_disk));
  }
  disk.detach();
}

void mounts::mount_it(memory kept) {
  disk.attach(home_disk, kept);
  forget_devices();
  mount_fs(fs, disk.device(), mount_point);
  if (!disk.has_log_disk()) return;
  disk.attach(log_disk, kept);
  try {
    mount_fs(log_kind, disk.device(log_disk), log_dir());
  } catch (std::runtime_error const&) {
    int const why = errno;
    unmount_fs(mount_point);
    errno = why;
    throw;
  }
}

bool mounts::mount_cut(unsigned& unmountable, memory kept) {
  try {
    mount_it(kept);
    return true;
  } catch (std::runtime_error const&) {
    int const why = errno;
    disk.detach();
    // Its superblock was torn: EINVAL is what btrfs and xfs call that.
    if (why != EBADMSG && why != EUCLEAN && why != EINVAL) throw;
    ++unmountable;
    return false;
  }
}

void mounts::unmount() {
  if (disk.has_log_disk()) unmount_fs(log_dir());
  unmount_fs(mount_point);
  disk.detach();
}

/// Without a shell between: starting a program is the greater part of trying a small log.
bool mounts::recover(std::string const& program) const {
  std::string const out = dir + "/recover.out", file = log();
  char const* const words[] = {program.c_str(), "-q", "--replay", file.c_str(), nullptr};
  posix_spawn_file_actions_t acts;
  posix_spawn_file_actions_init(&acts);
  posix_spawn_file_actions_addopen(&acts, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&acts, 1, 2);
  pid_t pid = -1;
  int const failed =
      posix_spawn(&pid, words[0], &acts, nullptr, const_cast<char**>(words), environ);
  posix_spawn_file_actions_destroy(&acts);
  int status = -1;
  return failed == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

}  // namespace sluice::crash
