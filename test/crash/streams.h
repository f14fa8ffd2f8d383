// SPDX-License-Identifier: Apache-2.0
// What streams write and the oracle looks for: which kind a stream is, its files, its blocks.
#pragma once

#include <cstring>
#include <random>

#include "workload.h"

namespace sluice::crash {

inline constexpr std::size_t block = 4096;
inline constexpr unsigned kept_files = 4;  // of a stream that makes and removes

enum class kind_of { overwrite, append, files, replace, rewrite };
inline kind_of way_of(unsigned stream) { return static_cast<kind_of>(stream % 5); }

/// A block that says whose it is, and that it is whole.
inline std::vector<std::byte> content(unsigned stream, std::uint64_t epoch) {
  std::vector<std::byte> bytes(block);
  std::mt19937_64 fill(stream * 1'000'003 + epoch);
  for (std::size_t at = 0; at < block; at += 8) {
    std::uint64_t const word = fill();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

inline std::string stream_file(std::string const& dir, unsigned stream) {
  return dir + "/stream-" + std::to_string(stream);
}
inline std::string epoch_file(std::string const& dir, unsigned stream, std::uint64_t epoch) {
  return stream_file(dir, stream) + "-" + std::to_string(epoch);
}

}  // namespace sluice::crash
