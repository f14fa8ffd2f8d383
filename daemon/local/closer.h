// SPDX-License-Identifier: Apache-2.0
// Closing connections of strangers. What a stranger sent beside a packet goes when the packet goes,
// and the release of a file may wait for the stranger's file server for ever.
// What stays true: who calls us releases no descriptor of a stranger. A connection that has some is
// closed by a thread with a table of descriptors of its own. One thread that hangs keeps no other
// connection from being closed, and holds no lock and no port of a daemon that is killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/descriptor.h"

namespace sluice::local {

class closer {
 public:
  /// A thread gets all that are kept, but only when the others are done or so many are kept. So a
  /// flood of `most_threads` times `most_kept` connections fills it.
  static constexpr std::size_t most_kept = 256, most_threads = 32;

  ~closer();
  /// Never waits for a stranger. His next packet fails with EPIPE.
  void close(descriptor socket);
  /// Nothing more is to be let in until it is not.
  bool is_full() const { return kept_.size() >= most_kept; }
  /// Tries to hand over what is kept.
  void hand_over(bool at_once = false);

 private:
  std::vector<descriptor> kept_;
  std::shared_ptr<std::atomic<std::size_t>> busy_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace sluice::local
