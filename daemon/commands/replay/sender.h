// SPDX-License-Identifier: Apache-2.0
// One thread of a replay: waits for the time of its next operation, sends it, and records when.
// Open loop: an operation that could not be sent in time is sent late, never left out, and its
// lateness counts from its due time. Operations due at the same moment are sent back to back, so
// that a high rate costs few sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "commands/replay/acts.h"
#include "commands/replay/counters.h"
#include "commands/replay/plan.h"

namespace sluice::replay {

struct sender_settings {
  arrivals kind = arrivals::even;
  std::uint64_t seed = 1;
  bool closed_loop = false;           // the next as soon as the last has ended
  unsigned max_inflight = 0;          // calls of the job under way at once; 0: any number
  std::int64_t late_ns = 10'000'000;  // what counts as delayed
  std::int64_t end_ns = INT64_MAX;    // after the start: send no more
};

class sender {
 public:
  sender(plan const& p, unsigned index, shared_counters& book, work_place& place,
         sender_settings const& s);

  /// Until everything was sent, the time is up or the shared counters says stop.
  void run();

 private:
  bool prepare();
  bool wait_for_start();
  void pick();
  bool may_send(std::int64_t now_ns);
  void wait(std::int64_t now_ns);
  std::int64_t send(std::int64_t now_ns);
  void turn_to(std::int64_t second);
  tally& slot(std::int64_t at_ns, unsigned share);

  plan const& plan_;
  worker const& me_;
  unsigned index_;
  shared_counters& book_;
  worker_page& page_;
  work_place& place_;
  sender_settings settings_;
  hand hand_;
  std::vector<schedule> schedules_;
  std::int64_t start_ns_ = 0;
  unsigned current_ = 0;  // the share whose op is next
  std::int64_t next_ns_ = 0;
  std::int64_t second_ = 0;
  tally* record_ = nullptr;
};

}  // namespace sluice::replay
