// SPDX-License-Identifier: Apache-2.0
#include "base/fs_journal.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <filesystem>
#include <fstream>

namespace sluice {

fs_journal fs_journal_of(int fd) {
  struct statfs fs = {};
  struct stat st = {};
  if (fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0) return fs_journal::none;
  if (fs.f_type == XFS_SUPER_MAGIC) return fs_journal::of_file;
  if (fs.f_type != EXT4_SUPER_MAGIC) return fs_journal::none;
  // ext2, ext3 and an ext4 without a journal have the same number.
  std::error_code unknown;
  auto const device = std::filesystem::read_symlink(
      fmt::format("/sys/dev/block/{}:{}", major(st.st_dev), minor(st.st_dev)), unknown);
  std::ifstream task("/sys/fs/ext4/" + device.filename().string() + "/journal_task");
  int pid = 0;
  return task >> pid ? fs_journal::of_all : fs_journal::none;
}

}  // namespace sluice
