// SPDX-License-Identifier: Apache-2.0
// Reads the records of a journal from its head, up to the first that does not continue the chain.
// Later records were never acknowledged, or are of an earlier lap: they do not count. But a batch
// is written only when everything before it is durable. So a later batch of the same generation
// after the break shows that acknowledged records have rotted.
#pragma once

#include <functional>
#include <span>

#include "journal/disk.h"
#include "journal/format.h"

namespace sluice::journal {

struct scanned {
  int error = 0;          // the disk's errno: then nothing is known of what follows `end`
  std::uint64_t end = 0;  // LSN after the last record
  std::uint64_t records = 0;
  std::uint64_t seed = 0;  // of the record that would follow
  std::uint64_t written_ns_max = 0;
  std::uint64_t damaged_before = 0;  // LSN of a batch after the end: all before it was durable
};

/// The payload lives until the visit returns. A visit that returns false ends the scan.
using visitor = std::function<bool(record_header const&, std::span<std::byte const>)>;

scanned scan(disk& d, superblock const& s, visitor const& visit, rules const& keep = {});

}  // namespace sluice::journal
