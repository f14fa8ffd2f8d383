// SPDX-License-Identifier: Apache-2.0
// A log of durable fsync as recovery reads it. The first byte chooses: the bytes of a whole disk; a
// payload of any kind; or a log whose chain is right and whose payloads and headers are not. What
// is taken for a record means the same after another round, and the end lies inside the ring.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "journal/disk.h"
#include "journal/record.h"
#include "journal/scan.h"
#include "journal/slots.h"

namespace {

using namespace sluice::journal;

constexpr std::uint64_t ring_bytes = area_bytes_min;

void must(bool holds) {
  if (!holds) std::abort();
}

class memory_disk : public disk {
 public:
  std::vector<std::byte> held = std::vector<std::byte>(area_begin + ring_bytes);

  std::uint64_t bytes() const override { return held.size(); }
  int read(std::uint64_t offset, std::span<std::byte> to) override {
    if (offset > held.size() || to.size() > held.size() - offset) return EIO;
    std::memcpy(to.data(), held.data() + offset, to.size());
    return 0;
  }
  int write(std::uint64_t offset, std::span<std::byte const> from) override {
    if (offset > held.size() || from.size() > held.size() - offset) return ENOSPC;
    std::memcpy(held.data() + offset, from.data(), from.size());
    return 0;
  }
  int flush() override { return 0; }
};

void decode_all(std::span<std::byte const> payload) {
  for (std::uint16_t k = 0; k < 16; ++k) {
    auto const first = decode(static_cast<kind>(k), payload);
    if (!first) continue;
    must(first->file.handle.size() <= 128);
    std::vector<std::byte> again;
    encode(*first, again);
    auto const second = decode(first->what, again);
    must(second.has_value() && second->file == first->file && second->name == first->name);
    must(second->offset == first->offset && second->bytes.size() == first->bytes.size());
  }
}

void read_disk(memory_disk& d) {
  auto const found = read_slots(d);
  if (found.what != slots_found::good) {
    must(!found.reason.empty());
    return;
  }
  superblock const& s = found.in_force;
  std::uint64_t records = 0;
  auto const visit = [&](record_header const& h, std::span<std::byte const> payload) {
    must(h.payload_bytes == payload.size() && h.payload_bytes <= payload_bytes_max);
    decode_all(payload);
    ++records;
    return true;
  };
  scanned const result = scan(d, s, visit);
  must(result.records == records && result.end >= s.head && result.end - s.head <= s.area_bytes);
}

superblock made(memory_disk& d) {
  std::byte const id[16] = {std::byte{7}};
  must(make_log(d, first_superblock(ring_bytes, 42, id, 1000)) == 0);
  auto const found = read_slots(d);
  must(found.what == slots_found::good);
  return found.in_force;
}

/// Pieces of {kind, change, length, payload}: a record each, one behind the other. A change that is
/// not 0 is put into one byte of the header behind the checksum's back.
void write_chain(memory_disk& d, superblock const& s, std::span<unsigned char const> in) {
  std::uint64_t at = area_begin + s.head % ring_bytes, seed = s.head_seed, lsn = s.head;
  while (in.size() >= 4) {
    std::size_t const length = std::min<std::size_t>(in[2] | in[3] << 8, in.size() - 4);
    std::uint64_t const whole = record_bytes(length);
    if (at + whole > d.held.size()) return;
    record_header h = {};
    h.magic = record_magic;
    h.kind = in[0] % 16;
    h.generation = s.generation;
    h.lsn = lsn;
    h.payload_bytes = static_cast<std::uint32_t>(length);
    auto const payload = std::as_bytes(in.subspan(4, length));
    h.checksum = seed = checksum_of(h, payload, seed);
    std::memcpy(d.held.data() + at, &h, sizeof h);
    std::memcpy(d.held.data() + at + sizeof h, payload.data(), payload.size());
    if (in[1] != 0) d.held[at + in[1] % sizeof h] ^= static_cast<std::byte>(in[1]);
    at += whole;
    lsn += whole;
    in = in.subspan(4 + length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size < 1) return 0;
  std::span const rest(data + 1, size - 1);
  if (data[0] % 3 == 1) {
    decode_all(std::as_bytes(rest));
    return 0;
  }
  memory_disk d;
  if (data[0] % 3 == 0) {
    made(d);
    std::memcpy(d.held.data(), rest.data(), std::min(rest.size(), d.held.size()));
  } else {
    write_chain(d, made(d), rest);
  }
  read_disk(d);
  return 0;
}
