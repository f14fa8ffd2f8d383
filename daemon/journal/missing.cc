// SPDX-License-Identifier: Apache-2.0
#include "journal/missing.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/mount_time.h"

namespace sluice::journal {

namespace {

// What xfs's own header has; linux/ does not.
struct xfs_bulk_request {
  std::uint64_t* last_inode;
  std::int32_t count;
  void* to;
  std::int32_t* had;
};
struct xfs_bulk_stat {
  std::uint64_t inode;
  std::uint16_t mode, links;
  unsigned char between[96];
  std::uint32_t generation;
  unsigned char rest[24];
};
static_assert(offsetof(xfs_bulk_stat, generation) == 108 && sizeof(xfs_bulk_stat) == 136);
constexpr unsigned long xfs_stat_one = _IOWR('X', 102, xfs_bulk_request);
constexpr int xfs_wide = 0x80;  // type of a handle with an inode number of 64 bits

template <class T>
T part_of(file_id const& id, std::size_t at) {
  T value = {};
  if (at + sizeof value <= id.handle.size())
    std::memcpy(&value, id.handle.data() + at, sizeof value);
  return value;
}

/// An inode that is there, and yet could not be opened, could not be read.
int verdict(bool is_there) { return is_there ? EIO : 0; }

int why_missing_on_xfs(int mount_fd, file_id const& id) {
  bool const is_wide = (id.handle_type & xfs_wide) != 0;
  std::uint64_t inode = is_wide ? part_of<std::uint64_t>(id, 0) : part_of<std::uint32_t>(id, 0);
  auto const generation = part_of<std::uint32_t>(id, is_wide ? 8 : 4);
  xfs_bulk_stat found = {};
  std::int32_t had = 0;
  xfs_bulk_request ask = {&inode, 1, &found, &had};
  if (ioctl(mount_fd, xfs_stat_one, &ask) == 0)
    return verdict(found.links != 0 && found.generation == generation);
  return errno == ENOENT || errno == EINVAL ? 0 : errno;
}

template <class T>
T field(std::span<std::byte const> from, std::size_t at) {
  T value = {};
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

/// Groups have descriptors, which say where their inodes lie.
int why_missing_on_ext4(mounted_at const& fs, file_id const& id) {
  std::byte super[ext4_super_bytes], group[64] = {}, inode[128];
  descriptor const disk = open_ext4(fs.source, fs.device, super);
  std::uint64_t const block = 1024ull << field<std::uint32_t>(super, 0x18);
  auto const per_group = field<std::uint32_t>(super, 0x28);
  auto const features = field<std::uint32_t>(super, 0x60);
  constexpr std::uint32_t meta_groups = 0x10, wide = 0x80;
  auto const number = part_of<std::uint32_t>(id, 0);
  if (!disk || per_group == 0 || (features & meta_groups) != 0 || number == 0) return 0;
  std::uint64_t const group_bytes =
      (features & wide) != 0 ? field<std::uint16_t>(super, 0xfe) : std::uint64_t{32};
  std::uint64_t const inode_bytes =
      field<std::uint32_t>(super, 0x4c) == 0 ? 128 : field<std::uint16_t>(super, 0x58);
  auto const read = [&](std::span<std::byte> to, std::uint64_t at) {
    ssize_t const n = pread(disk.get(), to.data(), to.size(), static_cast<off_t>(at));
    return n == static_cast<ssize_t>(to.size());
  };
  std::uint64_t const which = (number - 1) / per_group;
  if (number > field<std::uint32_t>(super, 0)) return 0;
  if (!read(std::span(group).first(std::min<std::uint64_t>(group_bytes, sizeof group)),
            (field<std::uint32_t>(super, 0x14) + 1) * block + which * group_bytes))
    return EIO;
  std::uint64_t const table =
      std::uint64_t{field<std::uint32_t>(group, 0x28)} << 32 | field<std::uint32_t>(group, 8);
  if (!read(inode, table * block + (number - 1) % per_group * inode_bytes)) return EIO;
  return verdict(field<std::uint16_t>(inode, 0x1a) != 0 &&
                 field<std::uint32_t>(inode, 0x64) == part_of<std::uint32_t>(id, 4));
}

}  // namespace

int why_missing(mounted_at const& fs, file_id const& id) {
  if (fs.type == "xfs") return why_missing_on_xfs(fs.fd, id);
  return why_missing_on_ext4(fs, id);
}

}  // namespace sluice::journal
