// SPDX-License-Identifier: Apache-2.0
// Looks for pages of files that nobody noted, in a thread of its own: the kernel counts through all
// pages that it has of a file, and while the journal is flushed there is time for it. What stays
// true: nobody is told that such a file is durable before the look has found nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "journal/held_file.h"

namespace sluice::journal {

/// Of one file, for one request.
struct late_look {
  std::shared_ptr<held_file> at;  // until it was looked at
  page_ranges known;              // pages that may be dirty
  std::uint64_t end = 0;          // of its pages
  bool is_done = false, has_found = false;
};

class late_looks {
 public:
  late_looks();
  ~late_looks();
  late_looks(late_looks const&) = delete;
  late_looks& operator=(late_looks const&) = delete;

  using look_ptr = std::shared_ptr<late_look>;
  look_ptr begin(std::shared_ptr<held_file> at, page_ranges known, std::uint64_t end);
  /// Whether a page was dirty that is not among the known ones. Waits until that is known.
  bool has_found(late_look const& look);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable arrived_, done_;
  std::deque<look_ptr> queue_;
  bool is_over_ = false;
  std::thread thread_;
};

/// About what a look takes: a call for each range, and a moment for each page that is not known.
std::uint64_t look_ns(page_ranges const& known, std::uint64_t pages);

}  // namespace sluice::journal
