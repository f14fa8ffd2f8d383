// SPDX-License-Identifier: Apache-2.0
#include "journal/mount_time.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/descriptor.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t cleaning_s = 2;  // the superblock has whole seconds, from before it cleaned
// Only a root file system is mounted to be read, which cleans it, and later to be written, which is
// the time that its superblock has.
constexpr std::uint64_t booting_s = 120;
constexpr off_t super_begin = 1024;
constexpr std::size_t low_at = 0x2c, magic_at = 0x38, high_at = 0x275;
constexpr std::uint16_t ext4_magic = 0xef53;

std::uint64_t seconds(clockid_t which) {
  return static_cast<std::uint64_t>(read_clock(which)) / second_ns;
}

}  // namespace

bool mount_time::explains(struct stat const& st) const {
  auto const& c = st.st_ctim;
  auto const& m = st.st_mtim;
  return c.tv_sec == m.tv_sec && c.tv_nsec == m.tv_nsec &&
         has(static_cast<std::uint64_t>(c.tv_sec) * second_ns +
             static_cast<std::uint64_t>(c.tv_nsec));
}

mount_time mount_time_at(std::uint64_t mounted_s, std::uint64_t booted_s) {
  bool const is_of_boot = mounted_s >= booted_s && mounted_s < booted_s + booting_s;
  return {(is_of_boot ? booted_s : mounted_s) * second_ns, (mounted_s + cleaning_s) * second_ns};
}

descriptor open_ext4(std::string const& source, std::string const& device,
                     std::span<std::byte, ext4_super_bytes> super) {
  descriptor fd(open(source.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st = {};
  if (!fd || fstat(fd.get(), &st) != 0 || !S_ISBLK(st.st_mode) ||
      device != fmt::format("{}:{}", major(st.st_rdev), minor(st.st_rdev)))
    return {};
  std::uint16_t magic = 0;
  if (pread(fd.get(), super.data(), super.size(), super_begin) !=
      static_cast<ssize_t>(super.size()))
    return {};
  std::memcpy(&magic, super.data() + magic_at, sizeof magic);
  if (magic != ext4_magic) return {};
  return fd;
}

mount_time mount_time_of(std::string const& source, std::string const& device, bool is_root) {
  std::byte super[ext4_super_bytes];
  if (!open_ext4(source, device, super)) return {};
  std::uint32_t low = 0;
  std::memcpy(&low, super + low_at, sizeof low);
  return mount_time_at(std::to_integer<std::uint64_t>(super[high_at]) << 32 | low,
                       is_root ? seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME) : 0);
}

}  // namespace sluice::journal
