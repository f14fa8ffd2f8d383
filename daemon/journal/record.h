// SPDX-License-Identifier: Apache-2.0
// The content of a record. A file is named by its file system's uuid and its file handle, which
// holds the inode's generation: a name may mean another file tomorrow, a handle never does. What
// stays true: decode() believes nothing; a payload that is not exactly a record is refused.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::journal {

/// The numbers are on disk; 4, 6 and 8 were other kinds once, that no journal has any more.
enum class kind : std::uint16_t {
  pad = 1,       // fills the last block of a batch
  data = 2,      // file, changed, offset, bytes
  truncate = 3,  // file, changed, offset (the new size)
  unlink = 5,    // file, directory, name, mode
  revoke = 7,    // file, below: its bytes and size of before that LSN are safe at home
  batch = 9,     // the head of a batch: the journal's own, like pad
  create = 10,   // file, changed, directory, name, mode, owner: the file, its link
  owner = 11,    // file, owner: whose it was when what follows of it was logged
};

struct file_id {
  std::array<std::uint8_t, 16> fs = {};
  std::int32_t handle_type = 0;
  std::string handle;  // 1 to 128 bytes
  auto operator<=>(file_id const&) const = default;
};

struct record {
  kind what = kind::pad;
  std::uint64_t stream = 0;
  std::uint64_t epoch = 0;
  file_id file;
  std::uint64_t changed_ns = 0;  // ctime of the home file just after the change; create: when the
                                 // file began; 0: nobody knows
  std::uint64_t offset = 0;      // truncate: the new size
  std::uint64_t below = 0;       // the tail of the journal when the sync at home began
  std::span<std::byte const> bytes;  // data; decoded: points into the payload
  file_id directory;
  std::string name;
  std::uint32_t mode = 0, uid = 0, gid = 0;
};

/// Appends the payload. The bytes of data are the last part of it.
void encode(record const& r, std::vector<std::byte>& to);
/// The same without these.
void encode_head(record const& r, std::vector<std::byte>& to);
/// Of a kind without data, none.
std::span<std::byte const> data_of(record const& r);

/// The most bytes of data one record can hold; longer writes take several.
inline constexpr std::size_t data_bytes_max = 1u << 20;

/// Nothing when the payload is not a record of that kind, or names what is no regular file.
std::optional<record> decode(kind what, std::span<std::byte const> payload);

/// Can be the last part of a path: not empty, no slash, neither . nor ..
bool is_name(std::string const& name);

char const* name_of(kind what);

/// Belongs to the journal and says nothing of files.
constexpr bool is_filler(kind what) { return what == kind::pad || what == kind::batch; }

}  // namespace sluice::journal
