// SPDX-License-Identifier: Apache-2.0
// A segment as the command sees it: made, mapped and checked, its counters summed.
// What stays true: a directory under RUN/jobs appears complete, in one rename, and nothing read
// from a segment is trusted before abi::refuse_reason has looked at it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "policy/compile.h"

namespace sluice::segment {

/// A mapped segment. Moves, does not copy.
class mapping {
 public:
  /// Throws when there is none or it is not one of ours.
  static mapping open(std::string const& path);
  ~mapping();
  mapping(mapping&& other) noexcept : at_(other.at_) { other.at_ = nullptr; }
  mapping(mapping const&) = delete;
  mapping& operator=(mapping const&) = delete;
  mapping& operator=(mapping&&) = delete;

  abi::segment& operator*() const { return *at_; }
  abi::segment* operator->() const { return at_; }

 private:
  explicit mapping(abi::segment* at) : at_(at) {}
  abi::segment* at_;
};

/// Makes RUN/jobs/JOB with its segment and the link to `library`. False when a job of that name is
/// there.
bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits);

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
sums sum(abi::segment const& s);

/// The name of a job, bounded even if scribbled over.
std::string job_name(abi::segment const& s);

std::int64_t monotonic_ns();

}  // namespace sluice::segment
