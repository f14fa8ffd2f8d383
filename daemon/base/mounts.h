// SPDX-License-Identifier: Apache-2.0
// The mount table as the kernel prints it (/proc/PID/mountinfo), read into rows. Pure, so that
// tests bring their own text; only read_mounts() and mount_id_of() read files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct mount_row {
  std::uint64_t id = 0, parent = 0;
  std::uint64_t device = 0;  // device_number()
  std::string root;          // which directory of its file system this mount shows
  std::string point;         // where
  std::string type;
  std::string source;   // a device, or what a server calls it
  std::string options;  // of the mount, then of the file system
};

/// Lines that do not look like a row are left out.
std::vector<mount_row> parse_mounts(std::string_view mountinfo);
/// Of this process.
std::vector<mount_row> read_mounts();
/// The mount on which an open file is; nothing: not known. No file system is asked.
std::optional<std::uint64_t> mount_id_of(int fd);

/// A field of a mount table, in which blank, tab, newline and backslash are \ooo.
std::string mount_text(std::string_view text);
/// Its parts, none of them empty; each of the characters `between` ends one.
std::vector<std::string_view> split_text(std::string_view text, char const* between);

/// True when `path` is `root` or lies below it. Both canonical.
bool lies_below(std::string_view path, std::string_view root);

constexpr std::uint64_t device_number(std::uint64_t major, std::uint64_t minor) {
  return major << 32 | minor;
}
/// `254:0`, as the kernel prints a device.
std::string device_text(std::uint64_t device);

}  // namespace sluice
