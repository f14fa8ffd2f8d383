// SPDX-License-Identifier: Apache-2.0
// What a call carries from enter_place() to leave() (meter.h), when it is not one of those that
// pass at once.
#pragma once

#include <cstdint>

#include "calls.h"
#include "core/cost_table.h"
#include "core/request.h"

namespace sluice {

constexpr bool moves_bytes(core::op what) {
  constexpr std::uint64_t ops = core::byte_ops_of(~std::uint64_t{0});  // the table has addresses
  return (ops & core::op_bit(what)) != 0;
}

enum class when : std::uint8_t {
  before,   // wait, then call
  cancels,  // the same, and a wait is a cancellation point
  never,    // charge, do not delay: close, and what is settled late
};

/// What the device had done for a thread when a call was made; `of` null: nobody knows.
struct work_before {
  core::device_work work;                           // as the kernel counts
  std::uint32_t noted_read = 0, noted_written = 0;  // blocks that calls have been asked for
  void const* of = nullptr;
  std::uint64_t generation = 0;  // of the fork page
};

/// One leg of a call in flight, when it is not as most are. Plain data: it may be abandoned at any
/// moment.
struct visit {
  call id;
  core::op what;
  when delay;
  bool refused;  // RWF_NOWAIT and no tokens: the caller gets EAGAIN, nothing was booked
  std::uint16_t entry;
  std::uint64_t bytes;  // asked for, until the gates: then what byte channels were booked for
  std::uint64_t rules;  // rules met
  std::uint16_t path_slot = 0;  // 0: no path is noted; see paths.h
  std::uint8_t path_tag = 0;
  std::uint8_t manner = 0;    // creates, made; of what counts in VOPs: unaligned, measured
  std::uint32_t weight = 0;   // not 0: it is timed, and stands for so many; see times.h
  std::int64_t began_ns = 0;  // CLOCK_MONOTONIC; untimed: the call has been made already
  bool has_waited = false;    // it is counted as delayed
  bool is_noted = false;      // its path is, or its role
  std::uint8_t clause = 0;    // that has it, + 1; see roles.h. 0: nobody asked
  // What its byte gates made it wait before the call. It may wait there again after it, and then
  // both together are one wait.
  static constexpr unsigned early_gates = 2;
  std::uint64_t early_wait_ns[early_gates] = {};
  work_before before = {};     // of what is measured
  core::device_work did = {};  // the same, when the call has been made

  static constexpr std::int64_t untimed = -1;
  static constexpr std::uint8_t creates = 1, unaligned = 2, measured = 4, made = 8;
  bool waited_early() const { return (early_wait_ns[0] | early_wait_ns[1]) != 0; }
};

}  // namespace sluice
