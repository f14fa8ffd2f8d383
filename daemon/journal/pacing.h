// SPDX-License-Identifier: Apache-2.0
// When to wait, and for how long: a batch for company, the writing of home for requests that wait
// for the journal on the same disk. Pure: times and counts are arguments.
// What stays true: a wait is bounded by a part of the time of a batch; a wait without effect is not
// tried again soon. Home is written at full speed before the journal is full.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::journal {

/// One flush serves all that are there when it begins, so it is worth a part of a flush to wait for
/// those whom the last one served: they are likely to come back.
class gathering {
 public:
  /// How many the next batch should serve.
  std::size_t expected() const { return expected_; }
  /// How long it may wait for them, when `queued` are there.
  std::uint64_t patience_ns(std::size_t queued) const;
  /// It waited: `before` were there, then `after`.
  void waited(std::size_t before, std::size_t after, std::uint64_t waited_ns);
  /// It served so many and took so long; `queued` came meanwhile.
  void written(std::size_t served, std::size_t queued, std::uint64_t took_ns);
  /// What a batch takes, smoothed.
  std::uint64_t batch_ns() const { return batch_ns_; }

 private:
  std::size_t expected_ = 0;
  std::uint64_t batch_ns_ = 0;
  unsigned vain_ = 0;  // waits in vain, one after the other
  unsigned skip_ = 0;  // batches that do not wait
};

/// Home is written in pieces; each is waited for, so the journal's next batch finds a short queue.
class home_pace {
 public:
  /// Of the next piece.
  std::uint64_t pages() const { return pages_; }
  /// A whole piece took so long; a batch of the journal takes `batch_ns`.
  void wrote(std::uint64_t took_ns, std::uint64_t batch_ns);
  /// Before the next piece: `used` of the journal's `room` is in use, and somebody waits for the
  /// journal.
  static std::uint64_t pause_ns(std::uint64_t took_ns, std::uint64_t used, std::uint64_t room,
                                bool somebody_waits);
  /// A sync of all writes what others have dirty, too, and a sync of each file costs a flush, which
  /// many share: worth so many bytes.
  static constexpr std::uint64_t flush_bytes = 64 << 10;
  static bool is_all_quicker(std::size_t files, std::uint64_t dirty_bytes,
                             std::uint64_t each_bytes = flush_bytes) {
    return dirty_bytes / std::max<std::size_t>(files, 1) < each_bytes;
  }

 private:
  std::uint64_t pages_ = 32;
};

}  // namespace sluice::journal
