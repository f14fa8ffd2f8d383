// SPDX-License-Identifier: Apache-2.0
// Counters of the threads of all processes of a replay, in memory that they share with the one that
// started them. Problem: counts per second must be right to the operation, however late they are
// read.
// Idea: a thread fills the record of the second it is in; when the second is over it hands the
// record over and takes the next one of its ring. Nobody resets what another writes.
// What stays true: a record has one writer at a time; when the ring is full the thread goes on in
// its last record, so nothing is lost; a thread that was killed leaves its last record readable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "commands/trace/trace.h"
#include "core/histogram.h"

namespace sluice::replay {

inline constexpr unsigned ring_records = 8;

/// One op in one second, of one thread.
struct tally {
  std::uint64_t submitted, done, failed, delayed;
  std::int64_t lag_ns_max;
  std::int64_t lag_ns_sum;
  std::uint32_t took[core::histogram_steps];
};

/// A thread: its page is in the shared counters, followed by ring_records × ops tallies.
struct alignas(64) worker_page {
  // Written by the thread.
  std::atomic<std::uint64_t> head;     // records handed over; the one being filled is head % ring
  std::atomic<std::int64_t> next_ns;   // the next op is meant for, after the start; far: none
  std::atomic<std::uint32_t> next_op;  // index among its own ops
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> helpers;
  std::atomic<std::int64_t> first_ns, last_ns;  // after the start; of the first send, the last end
  std::atomic<bool> ready, ended;
  std::atomic<int> last_error[trace::op_count];  // by index among its own ops
  std::int64_t second[ring_records];
  // Written by the reader.
  alignas(64) std::atomic<std::uint64_t> tail;  // records taken
};

/// A process: whom to end when it does not end itself.
struct process_page {
  std::atomic<int> pid;
  std::atomic<bool> ended;
};

struct counters_head {
  std::uint64_t fingerprint;  // of the plan: those who joined must have made the same
  char root[4096];            // the own directory
  std::uint64_t root_device, root_inode;
  std::atomic<std::int64_t> start_ns;  // of CLOCK_MONOTONIC; 0: not yet
  std::atomic<bool> stop;
  std::atomic<int> error;  // of a thread that could not begin, and what it was about
  std::atomic<unsigned> error_op;
};

/// Where everything is: from the numbers of the plan alone.
struct counters_shape {
  unsigned jobs = 0;
  unsigned processes = 0;
  unsigned workers = 0;
  unsigned ops_most = 0;  // of one thread

  std::size_t page_bytes() const;
  std::size_t bytes() const;
};

class shared_counters {
 public:
  /// Makes one that children may inherit; throws a sluice error.
  explicit shared_counters(counters_shape const& s);
  /// Maps one that was inherited.
  shared_counters(counters_shape const& s, int fd);
  ~shared_counters();
  shared_counters(shared_counters const&) = delete;
  shared_counters& operator=(shared_counters const&) = delete;

  int fd() const { return fd_; }
  counters_shape const& shape() const { return shape_; }
  counters_head& head() const { return *reinterpret_cast<counters_head*>(base_); }
  process_page& process(unsigned i) const;
  worker_page& worker(unsigned i) const;
  /// The tallies of a record, one per op of the thread.
  tally* record(unsigned worker, std::uint64_t number) const;
  /// Calls of a job that are under way, kept only where they are bounded.
  std::atomic<unsigned>& under_way(unsigned job) const;

 private:
  void map();

  counters_shape shape_;
  int fd_ = -1;
  std::byte* base_ = nullptr;
};

}  // namespace sluice::replay
