// SPDX-License-Identifier: Apache-2.0
// Which parts a kind has is a row of `parts_of`; encode and decode walk the same row.
#include "journal/record.h"

#include <sys/stat.h>

#include <cstring>

namespace sluice::journal {

namespace {

constexpr std::size_t handle_bytes_max = 128;
constexpr std::size_t name_bytes_max = 255;

enum part : unsigned {
  has_file = 1,
  has_changed = 2,
  has_offset = 4,
  has_directory = 8,
  has_mode = 16,
  has_owner = 32,
  has_bytes = 64,
  has_below = 128,
};

struct kind_row {
  kind what;
  char const* name;
  unsigned parts;
};

constexpr kind_row kinds[] = {
    {kind::data, "data", has_file | has_changed | has_offset | has_bytes},
    {kind::truncate, "truncate", has_file | has_changed | has_offset},
    {kind::create, "create", has_file | has_changed | has_directory | has_mode | has_owner},
    {kind::unlink, "unlink", has_file | has_directory | has_mode},
    {kind::revoke, "revoke", has_file | has_below},
    {kind::owner, "owner", has_file | has_owner},
};

kind_row const* row_of(kind what) {
  for (auto const& row : kinds)
    if (row.what == what) return &row;
  return nullptr;
}

void put(std::vector<std::byte>& to, void const* from, std::size_t bytes) {
  auto const* const p = static_cast<std::byte const*>(from);
  to.insert(to.end(), p, p + bytes);
}

template <class T>
void put(std::vector<std::byte>& to, T value) {
  put(to, &value, sizeof value);
}

void put(std::vector<std::byte>& to, file_id const& f) {
  put(to, f.fs.data(), f.fs.size());
  put(to, f.handle_type);
  put(to, static_cast<std::uint32_t>(f.handle.size()));
  put(to, f.handle.data(), f.handle.size());
}

void put(std::vector<std::byte>& to, std::string const& name) {
  put(to, static_cast<std::uint32_t>(name.size()));
  put(to, name.data(), name.size());
}

/// Takes parts from the front; once something is missing, all that follows is.
struct reader {
  std::span<std::byte const> left;
  bool good = true;

  void take(void* to, std::size_t bytes) {
    if (!good || left.size() < bytes) {
      good = false;
      return;
    }
    std::memcpy(to, left.data(), bytes);
    left = left.subspan(bytes);
  }
  template <class T>
  void take(T& to) {
    take(&to, sizeof to);
  }
  void take(std::string& to, std::size_t least, std::size_t most) {
    std::uint32_t bytes = 0;
    take(bytes);
    good = good && bytes >= least && bytes <= most && bytes <= left.size();
    if (!good) return;
    to.resize(bytes);
    take(to.data(), bytes);
  }
  void take(file_id& f) {
    take(f.fs.data(), f.fs.size());
    take(f.handle_type);
    take(f.handle, 1, handle_bytes_max);
  }
};

}  // namespace

bool is_name(std::string const& name) {
  return !name.empty() && name.size() <= name_bytes_max && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

char const* name_of(kind what) {
  kind_row const* const row = row_of(what);
  return row != nullptr ? row->name : is_filler(what) ? "filler" : "unknown";
}

void encode(record const& r, std::vector<std::byte>& to) {
  encode_head(r, to);
  auto const bytes = data_of(r);
  put(to, bytes.data(), bytes.size());
}

std::span<std::byte const> data_of(record const& r) {
  kind_row const* const row = row_of(r.what);
  bool const has_data = row != nullptr && (row->parts & has_bytes) != 0;
  return has_data ? r.bytes : std::span<std::byte const>();
}

void encode_head(record const& r, std::vector<std::byte>& to) {
  kind_row const* const row = row_of(r.what);
  if (row == nullptr) return;
  unsigned const parts = row->parts;
  if (parts & has_file) put(to, r.file);
  if (parts & has_changed) put(to, r.changed_ns);
  if (parts & has_offset) put(to, r.offset);
  if (parts & has_below) put(to, r.below);
  if (parts & has_directory) {
    put(to, r.directory);
    put(to, r.name);
  }
  if (parts & has_mode) put(to, r.mode);
  if (parts & has_owner) {
    put(to, r.uid);
    put(to, r.gid);
  }
}

std::optional<record> decode(kind what, std::span<std::byte const> payload) {
  kind_row const* const row = row_of(what);
  if (row == nullptr) return {};
  unsigned const parts = row->parts;
  record r;
  r.what = what;
  reader in{payload};
  if (parts & has_file) in.take(r.file);
  if (parts & has_changed) in.take(r.changed_ns);
  if (parts & has_offset) in.take(r.offset);
  if (parts & has_below) in.take(r.below);
  if (parts & has_directory) {
    in.take(r.directory);
    in.take(r.name, 1, name_bytes_max);
  }
  if (parts & has_mode) in.take(r.mode);
  if (parts & has_owner) {
    in.take(r.uid);
    in.take(r.gid);
  }
  if (!in.good) return {};
  if ((parts & has_directory) && !is_name(r.name)) return {};
  if ((parts & has_mode) && !S_ISREG(r.mode)) return {};
  constexpr std::uint64_t offset_max = INT64_MAX;
  if (r.offset > offset_max) return {};
  if (parts & has_bytes) {
    if (in.left.empty() || in.left.size() > data_bytes_max ||
        in.left.size() > offset_max - r.offset)
      return {};
    r.bytes = in.left;
  } else if (!in.left.empty()) {
    return {};
  }
  return r;
}

}  // namespace sluice::journal
