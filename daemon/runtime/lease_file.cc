// SPDX-License-Identifier: Apache-2.0
#include "runtime/lease_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/boot_id.h"
#include "base/error.h"

namespace sluice::runtime {

namespace {

constexpr std::uint64_t magic = 0x33657361656c'6c73ull;

struct record {
  std::uint64_t checksum;  // of all that follows
  std::uint64_t magic;
  std::uint64_t sequence;
  char boot_id[40];
  std::uint64_t parent, obeyed, parent_incarnation;
  std::int64_t lend_until;
  std::uint64_t count;
  struct row {
    std::uint64_t key, incarnation, counter, value;
    std::int64_t until;
  } row[most_supplies];
};
static_assert(sizeof(record) == 104 + 40 * most_supplies);

std::uint64_t checksum_of(record const& r) {
  auto const* const bytes = reinterpret_cast<unsigned char const*>(&r);
  std::uint64_t sum = 0xcbf29ce484222325ull;
  for (std::size_t i = sizeof r.checksum; i < sizeof r; ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3ull;
  return sum;
}

bool read_half(int fd, unsigned half, record& r) {
  ssize_t const got = pread(fd, &r, sizeof r, static_cast<off_t>(half * sizeof r));
  return got == static_cast<ssize_t>(sizeof r) && r.magic == magic &&
         r.checksum == checksum_of(r) && r.count <= most_supplies;
}

}  // namespace

kept_lease kept_of(lease::child_memory const& m, std::span<std::uint32_t const> keys) {
  kept_lease kept{m.parent, m.obeyed, m.parent_incarnation, m.lend_until, {}};
  for (std::size_t i = 0; i < m.supply.size() && i < keys.size(); ++i)
    if (keys[i] != no_key) kept.supply.push_back({keys[i], m.supply[i]});
  return kept;
}

lease::child_memory memory_of(kept_lease const& kept, std::span<std::uint32_t const> keys) {
  lease::child_memory m{kept.parent, kept.obeyed, kept.parent_incarnation, kept.lend_until, {}};
  m.supply.resize(keys.size());
  for (auto const& e : kept.supply) {
    auto const at = std::find(keys.begin(), keys.end(), e.key);
    if (at != keys.end()) m.supply[static_cast<std::size_t>(at - keys.begin())] = e.of;
  }
  return m;
}

lease_file::lease_file(std::string const& path)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)),
      boot_id_(boot_id().substr(0, sizeof record::boot_id - 1)) {
  if (!fd_) throw sluice_error(fmt::format("{}: {}", path, std::strerror(errno)));
  if (int const why = posix_fallocate(fd_.get(), 0, 2 * sizeof(record)); why != 0)
    throw sluice_error(fmt::format("no room for {}: {}", path, std::strerror(why)));
  record r;
  for (unsigned half = 0; half < 2; ++half)
    if (read_half(fd_.get(), half, r)) sequence_ = std::max(sequence_, r.sequence);
}

std::optional<kept_lease> lease_file::read() const {
  record best = {}, r;
  for (unsigned half = 0; half < 2; ++half)
    if (read_half(fd_.get(), half, r) && r.sequence > best.sequence) best = r;
  best.boot_id[sizeof best.boot_id - 1] = 0;
  if (best.sequence == 0 || best.boot_id != boot_id_) return std::nullopt;
  kept_lease kept{best.parent, best.obeyed, best.parent_incarnation, best.lend_until, {}};
  for (unsigned i = 0; i < best.count; ++i) {
    auto const& row = best.row[i];
    kept.supply.push_back({static_cast<std::uint32_t>(row.key),
                           {{row.incarnation, row.counter}, row.value, row.until}});
  }
  return kept;
}

bool lease_file::write(kept_lease const& kept) {
  record r;
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  r.magic = magic;
  r.sequence = ++sequence_;
  std::strncpy(r.boot_id, boot_id_.c_str(), sizeof r.boot_id - 1);
  r.parent = kept.parent;
  r.obeyed = kept.obeyed;
  r.parent_incarnation = kept.parent_incarnation;
  r.lend_until = kept.lend_until;
  for (auto const& e : kept.supply) {
    if (r.count == most_supplies) break;
    r.row[r.count++] = {e.key, e.of.applied.incarnation, e.of.applied.counter, e.of.value,
                        e.of.until};
  }
  r.checksum = checksum_of(r);
  auto const at = static_cast<off_t>((sequence_ & 1) * sizeof r);
  return pwrite(fd_.get(), &r, sizeof r, at) == static_cast<ssize_t>(sizeof r);
}

}  // namespace sluice::runtime
