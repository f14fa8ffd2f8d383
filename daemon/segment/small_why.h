// SPDX-License-Identifier: Apache-2.0
// Why nothing came of small I/O, in words: what was refused, as it was counted, or else what the
// counters say of the calls that were made. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sluice::segment {

/// The counters of small.def that are not 0, in words, each a part of a sentence.
enum class small_calls_of : std::uint8_t { writes, reads };
/// "3 looks: others may share the file".
std::vector<std::string> refusals(nlohmann::ordered_json const& counted, small_calls_of kind);
/// "ended once, as they came too slowly".
std::vector<std::string> endings(nlohmann::ordered_json const& counted, small_calls_of kind);

/// The call that may be taken, and what makes a habit of it.
struct small_habit {
  char const* call;
  char const* done;
  std::uint64_t most_bytes;
  unsigned in_a_row;
  std::string but = {};  // what else is to be said of that
  small_calls_of kind = small_calls_of::writes;
  bool is_lost_with_program = false;  // what waits
};
small_habit writes_habit(bool has_gathered, bool has_strict);
small_habit reads_habit();

/// What is known of calls of that kind.
struct small_calls {
  bool is_reached = false;  // a process has attached
  bool is_running = false;
  std::uint64_t own = 0, others = 0;  // by the call itself; by others, such as pwrite
  // In the targets, by the sample of sizes: all, those below the largest small ones, and those from
  // there to twice as many bytes.
  std::uint64_t timed = 0, timed_and_small = 0, timed_at_most = 0;
};

/// `counted`: the counters of small.def.
std::string why_none(nlohmann::ordered_json const& counted, small_habit const& habit,
                     small_calls const& calls);
std::string why_no_hints(nlohmann::ordered_json const& counted, bool is_reached);

}  // namespace sluice::segment
