// SPDX-License-Identifier: Apache-2.0
// The requests that are measured.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::calibrate {

/// What page caches and most devices work in.
inline constexpr std::uint64_t page_bytes = 4096;

enum class motion : std::uint8_t { random, sequential };
enum class cache : std::uint8_t { direct, cold };  // cold: through the page cache, which is emptied
enum class writing : std::uint8_t { overwrite, append, new_file };

/// A request that one thread makes again and again.
struct work {
  std::string op;  // read, write, or an op of metadata.h
  std::uint64_t bytes = 0;
  motion how = motion::random;
  cache by = cache::direct;
  writing kind = writing::overwrite;
  bool is_aligned = true;

  bool moves_bytes() const { return op == "read" || op == "write"; }
};

}  // namespace sluice::calibrate
