// SPDX-License-Identifier: Apache-2.0
// The oracle: see workload.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "streams.h"

namespace sluice::crash {

namespace {

/// Content, made once: every state is asked for the same.
std::vector<std::byte> const& known(unsigned stream, std::uint64_t epoch) {
  static std::map<std::pair<unsigned, std::uint64_t>, std::vector<std::byte>> made;
  auto const [at, is_new] = made.try_emplace({stream, epoch});
  if (is_new) at->second = content(stream, epoch);
  return at->second;
}

std::optional<std::vector<std::byte>> read_block(std::string const& path, std::uint64_t offset) {
  int const fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::vector<std::byte> bytes(block);
  bool const whole = pread(fd, bytes.data(), block, static_cast<off_t>(offset)) == block;
  close(fd);
  if (!whole) return {};
  return bytes;
}

bool is_there(std::string const& dir, unsigned s, std::uint64_t epoch) {
  bool const own = way_of(s) == kind_of::files;
  auto const found = own ? read_block(epoch_file(dir, s, epoch), 0)
                         : read_block(stream_file(dir, s), epoch * block);
  return found && *found == known(s, epoch);
}

/// The oldest epoch of which a sector of the block is: one that is written in place when the power
/// fails may be of two epochs, with fsync as well. Nothing when a sector is of none.
std::optional<std::uint64_t> oldest_in(std::vector<std::byte> const& found, unsigned stream,
                                       std::uint64_t epochs) {
  constexpr std::size_t sector = 512;
  std::optional<std::uint64_t> oldest;
  for (std::size_t at = 0; at < found.size(); at += sector) {
    std::uint64_t e = epochs;
    while (e-- > 0) {
      auto const& one = known(stream, e);
      if (std::memcmp(one.data() + at, found.data() + at, sector) == 0) break;
    }
    if (e >= epochs) return {};
    oldest = oldest ? std::min(*oldest, e) : e;
  }
  return oldest;
}

}  // namespace

picture look(std::string const& dir, run_size size) {
  picture p(size.streams, std::vector<bool>(size.epochs));
  for (unsigned s = 0; s < size.streams; ++s) {
    if (way_of(s) != kind_of::replace && way_of(s) != kind_of::rewrite) {
      for (std::uint64_t e = 0; e < size.epochs; ++e) p[s][e] = is_there(dir, s, e);
      continue;
    }
    auto const found = read_block(stream_file(dir, s), 0);
    auto const newest = found ? oldest_in(*found, s, size.epochs) : std::nullopt;
    for (std::uint64_t e = 0; newest && e <= *newest; ++e) p[s][e] = true;
  }
  return p;
}

offences judge(picture const& p, mode const& m, std::vector<std::uint64_t> const& acknowledged) {
  offences found;
  for (unsigned s = 0; s < p.size(); ++s) {
    std::uint64_t const acked = acknowledged[s], all = p[s].size();
    // A stream that removes its old files has a window; what was removed for
    // good must stay so.
    std::uint64_t first = 0;
    if (way_of(s) == kind_of::files) {
      for (std::uint64_t e = 0; e + kept_files < acked; ++e) found.lost += p[s][e];
      while (first < all && !p[s][first]) ++first;
      if (first > acked) first = acked;
      if (acked > kept_files) first = std::max(first, acked - kept_files);
    }
    // Where more than one epoch may be under way, what is there may have removed others already.
    std::uint64_t newest = acked;
    for (std::uint64_t e = acked; e < all; ++e)
      if (p[s][e]) newest = e;
    bool gap = false;
    for (std::uint64_t e = first; e < all; ++e) {
      bool const removing = way_of(s) == kind_of::files && e + kept_files <= newest;
      if (!p[s][e] && !removing) {
        gap = true;
        found.lost += m.acknowledges && e < acked;
        if (m.acknowledges && e < acked && found.first.empty())
          found.first = "stream " + std::to_string(s) + " lost epoch " + std::to_string(e) +
                        " of " + std::to_string(acked);
      } else if (p[s][e] && gap) {
        ++found.order;
      }
    }
  }
  return found;
}

}  // namespace sluice::crash
