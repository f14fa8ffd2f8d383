// SPDX-License-Identifier: Apache-2.0
// The counters of a job, summed over the shards of its threads.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/segment.h"
#include "base/foreign.h"

namespace sluice::segment {

struct call_sums {
  std::uint64_t calls = 0, errors = 0, bytes = 0, delayed = 0, waited_ns = 0;
};

struct channel_sums {
  std::uint64_t calls = 0, amount = 0, delayed = 0, waited_ns = 0;
};

struct sums {
  std::vector<call_sums> call;        // max_calls rows
  std::vector<channel_sums> channel;  // channel_count rows
};

/// Counters summed over all shards ever used.
sums sum(foreign<abi::segment> const& s);

/// How often one call was made, which is much less to read.
std::uint64_t sum_calls(foreign<abi::segment> const& s, unsigned call);
/// One channel of it, the same.
channel_sums sum_channel(foreign<abi::segment> const& s, unsigned channel);

struct op_sums {
  std::uint64_t calls = 0, bytes = 0, took_ns = 0;
};

/// Calls and bytes by op, over all shards ever used, and the time in the calls: op_count rows.
std::vector<op_sums> sum_by_op(foreign<abi::segment> const& s);

/// The time in the calls themselves by op, all targets and threads added, by their sample; ns.
std::vector<std::uint64_t> took_by_op(foreign<abi::segment> const& s);

}  // namespace sluice::segment
