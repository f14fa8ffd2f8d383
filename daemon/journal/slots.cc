// SPDX-License-Identifier: Apache-2.0
// A slot of a version we do not know makes the whole journal unknown, even beside one we could
// read: its writer knew why.
#include "journal/slots.h"

#include <cstring>

namespace sluice::journal {

namespace {

bool is_zero(superblock const& s) {
  auto const* const p = reinterpret_cast<unsigned char const*>(&s);
  for (std::size_t i = 0; i < sizeof s; ++i)
    if (p[i] != 0) return false;
  return true;
}

bool has_magic(superblock const& s) {
  return std::memcmp(s.magic, log_magic, sizeof log_magic) == 0;
}

bool is_valid(superblock const& s, std::uint64_t bytes) {
  return has_magic(s) && s.version == format_version && s.checksum == checksum_of(s) &&
         s.area_bytes >= area_bytes_min && s.area_bytes % block_bytes == 0 &&
         s.area_bytes <= bytes - area_begin && s.head % block_bytes == 0;
}

}  // namespace

slots_found read_slots(disk& d) {
  slots_found found;
  if (d.bytes() < area_begin + area_bytes_min) {
    found.what = slots_found::foreign;
    found.reason = "is too short to be a journal";
    return found;
  }
  block_buffer both(area_begin);
  if (int const failed = d.read(0, both); failed != 0) {
    found.what = slots_found::unreadable;
    found.error = failed;
    found.reason = std::string("cannot be read: ") + std::strerror(failed);
    return found;
  }
  superblock slot[2];
  std::memcpy(slot, both.data(), sizeof slot);
  bool any_magic = false, all_zero = true;
  superblock const* best = nullptr;
  for (auto const& s : slot) {
    any_magic |= has_magic(s);
    all_zero &= is_zero(s);
    if (has_magic(s) && s.version != format_version) {
      found.what = slots_found::newer;
      found.reason = "is a journal of format version " + std::to_string(s.version) +
                     "; this program knows version " + std::to_string(format_version);
      return found;
    }
    if (is_valid(s, d.bytes()) && (best == nullptr || s.sequence > best->sequence)) best = &s;
  }
  if (best != nullptr) {
    found.what = slots_found::good;
    found.in_force = *best;
  } else if (any_magic) {
    found.what = slots_found::damaged;
    found.reason = "is a journal whose two superblocks are both damaged";
  } else if (all_zero) {
    found.reason = "has no superblock: it was never made a journal";
  } else {
    found.what = slots_found::foreign;
    found.reason = "is not a journal of sluice";
  }
  return found;
}

int write_slot(disk& d, superblock& s, rules const& keep) {
  superblock next = s;
  ++next.sequence;
  next.checksum = checksum_of(next);
  block_buffer block(block_bytes, std::byte{0});
  std::memcpy(block.data(), &next, sizeof next);
  std::uint64_t const slot = keep.two_slots ? next.sequence % 2 : 0;
  int const failed = keep.superblock_before_reuse ? d.write_through(slot * block_bytes, block)
                                                  : d.write(slot * block_bytes, block);
  if (failed == 0) s = next;
  return failed;
}

int make_log(disk& d, superblock s) {
  int const failed = write_slot(d, s);
  return failed != 0 ? failed : write_slot(d, s);
}

}  // namespace sluice::journal
