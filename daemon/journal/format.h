// SPDX-License-Identifier: Apache-2.0
// The journal on disk, version 1. Little-endian; every field at a fixed offset.
//
//     0        4096       8192                                            8192 + area_bytes
//     | slot 0 | slot 1   | records, in a ring: position lsn % area_bytes |
//
// A log sequence number (LSN) counts bytes since the journal was made and never goes back. A batch
// of records fills whole blocks, so no block that was acknowledged is ever written again. The
// checksum of a record is seeded with that of the record before it, and the first of a generation
// with a secret salt: a record counts only after all others, and no file's content can pass for
// one. A batch begins with a record that proves itself by the salt alone: where one is found after
// a break of the chain, the break is damage and not a torn tail. The superblock lies in slot
// sequence % 2; the other slot holds the one before.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "journal/own_times.h"

namespace sluice::journal {

static_assert(std::endian::native == std::endian::little, "the journal is little-endian");

inline constexpr std::uint64_t block_bytes = 4096;
inline constexpr std::uint64_t record_align = 64;
inline constexpr std::uint64_t area_begin = 2 * block_bytes;
inline constexpr std::uint64_t area_bytes_min = 16 * block_bytes;
inline constexpr std::uint32_t payload_bytes_max = (1u << 20) + 4096;
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint32_t record_magic = 0x63726c73;  // "slrc"
inline constexpr char log_magic[8] = {'s', 'l', 'u', 'i', 'c', 'e', 'l', 'g'};

/// What keeps the journal right. The property test switches each off and must see data lost.
struct rules {
  bool flush_before_ack = true;  // a commit returns after a flush
  bool home_before_trim = true;  // records go when the home files are safe, not before
  bool chain = true;             // a checksum depends on all records before
  bool two_slots = true;         // a superblock never overwrites the one in force
  bool generation_moves = true;  // who continues a journal after a crash takes a new generation
  bool lsn_checked = true;       // a record of an earlier lap is not one of this lap
  bool superblock_before_reuse = true;  // space is free when the disk knows that it is
};

struct superblock {
  char magic[8];
  std::uint32_t version;  // magic and version stay where they are in every version
  std::uint32_t zero;
  std::uint64_t sequence;    // of superblocks; the higher valid one is in force
  std::uint64_t generation;  // of all records that count
  std::uint64_t salt;        // first seed of the generation; secret, for the file has mode 0600
  std::uint64_t area_bytes;  // of the ring; whole blocks
  std::uint64_t head;        // LSN of the oldest record that counts; all before are safe at home
  std::uint64_t head_seed;   // seed of the record at head
  std::uint64_t zero2;       // older programs had a time here
  std::uint64_t window_ns;   // a live journal commits at least that often
  std::uint8_t id[16];       // of this journal, random
  std::uint8_t boot[16];     // of the machine that writes this generation; zero: not known
  std::uint64_t home_error;  // errno: home lost bytes that the journal has; all must be replayed
  own_times ours;            // when recoveries changed home files
  std::uint8_t rest[block_bytes - 256];  // zero
  std::uint64_t checksum;                // of all bytes before it
};
static_assert(sizeof(superblock) == block_bytes);
static_assert(offsetof(superblock, generation) == 24 && offsetof(superblock, head) == 48);
static_assert(offsetof(superblock, home_error) == 112);
static_assert(offsetof(superblock, checksum) == block_bytes - 8);

struct record_header {
  std::uint32_t magic;
  std::uint16_t kind;
  std::uint16_t zero;
  std::uint64_t generation;
  std::uint64_t lsn;         // of this header
  std::uint64_t checksum;    // of header (this field 0) and payload, seeded with the one before
  std::uint64_t written_ns;  // wall clock when it was appended
  std::uint64_t stream;      // whose
  std::uint64_t epoch;       // of that stream
  std::uint32_t payload_bytes;
  std::uint32_t zero2;
};
static_assert(sizeof(record_header) == record_align);
static_assert(offsetof(record_header, checksum) == 24 && offsetof(record_header, epoch) == 48);

/// The payload of the first record of a batch, which is written when all before it is durable.
struct batch_head {
  std::uint64_t zero;
  std::uint64_t proof;
};
static_assert(sizeof(batch_head) == 16);

/// What a record takes in the journal.
constexpr std::uint64_t record_bytes(std::uint64_t payload) {
  return sizeof(record_header) + (payload + record_align - 1) / record_align * record_align;
}

/// What the head of a batch takes.
inline constexpr std::uint64_t batch_head_bytes = record_bytes(sizeof(batch_head));

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

std::uint64_t checksum_of(record_header header, std::span<std::byte const> payload,
                          std::uint64_t seed);
std::uint64_t checksum_of(superblock const& s);
/// Of a batch that begins at `lsn`.
std::uint64_t proof_of(std::uint64_t generation, std::uint64_t lsn, std::uint64_t salt);

/// Finds nothing wrong but the LSN and generation of a header, which are the caller's business.
bool is_sound(record_header const& header);

/// A new journal's superblock, complete but for sequence and checksum.
superblock first_superblock(std::uint64_t area_bytes, std::uint64_t salt,
                            std::span<std::byte const, 16> id, std::uint64_t window_ns);

}  // namespace sluice::journal
