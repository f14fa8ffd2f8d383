// SPDX-License-Identifier: Apache-2.0
// Reads and writes of one thread, one after the other, each on a place of the file where nobody has
// been for long: a request that the page cache answers says nothing of the device.
#pragma once

#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "commands/calibrate/ground.h"
#include "commands/calibrate/work.h"

namespace sluice::calibrate {

/// Visits 0 … count - 1, each once, in an order that looks random, then again.
class shuffle {
 public:
  shuffle(std::uint64_t count, std::uint64_t seed);
  std::uint64_t next();

 private:
  std::uint64_t count_, mask_, at_, factor_, step_;
};

class requests {
 public:
  /// `text`: what is written and read into, of work.bytes + one page, aligned to a page.
  requests(ground const& where, work const& what, unsigned thread, unsigned threads, char* text);

  /// errno of what could not be opened, or 0.
  int error() const { return error_; }
  /// How many requests run() makes: as many buffered writes as are made durable by one sync.
  unsigned per_run() const { return batch_; }
  /// 0 or errno. What makes the requests durable and the cache cold belongs to them.
  int run();

 private:
  int fail() const;
  int one();
  std::uint64_t next_place();
  int read_once();
  int write_once();
  int grow();
  int make_new();
  int settle();
  bool is_batched() const;

  ground const& where_;
  work what_;
  char* text_;
  descriptor fd_;
  std::uint64_t stride_, first_ = 0, places_, shift_, turn_ = 0;
  std::uint64_t grown_ = 0, most_grown_ = 0;
  std::vector<std::uint64_t> dirty_;  // places that were written and not synced
  unsigned batch_ = 1;
  shuffle order_;
  int error_ = 0;
};

}  // namespace sluice::calibrate
