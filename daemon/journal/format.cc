// SPDX-License-Identifier: Apache-2.0
// Why XXH3 (libxxhash): 64 bits, so that chance passes a torn record once in 10^19 and not once in
// 4 * 10^9 as CRC-32; a seed, which makes the chain; several GB/s without tables of our own. Its
// output is fixed since version 0.8.0.
#include "journal/format.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace sluice::journal {

std::uint64_t checksum_of(record_header header, std::span<std::byte const> payload,
                          std::uint64_t seed) {
  header.checksum = 0;
  // The header's sum seeds the payload's: one pass, no state, no copy.
  std::uint64_t const of_header = XXH3_64bits_withSeed(&header, sizeof header, seed);
  return payload.empty() ? of_header
                         : XXH3_64bits_withSeed(payload.data(), payload.size(), of_header);
}

std::uint64_t checksum_of(superblock const& s) {
  return XXH3_64bits(&s, offsetof(superblock, checksum));
}

std::uint64_t proof_of(std::uint64_t generation, std::uint64_t lsn, std::uint64_t salt) {
  std::uint64_t const place[2] = {generation, lsn};
  return XXH3_64bits_withSeed(place, sizeof place, ~salt);
}

bool is_sound(record_header const& header) {
  return header.magic == record_magic && header.zero == 0 && header.zero2 == 0 &&
         header.payload_bytes <= payload_bytes_max;
}

superblock first_superblock(std::uint64_t area_bytes, std::uint64_t salt,
                            std::span<std::byte const, 16> id, std::uint64_t window_ns) {
  superblock s = {};
  std::copy(std::begin(log_magic), std::end(log_magic), s.magic);
  s.version = format_version;
  s.generation = 1;
  s.salt = salt;
  s.area_bytes = area_bytes;
  s.head_seed = salt;
  s.window_ns = window_ns;
  std::memcpy(s.id, id.data(), id.size());
  return s;
}

}  // namespace sluice::journal
