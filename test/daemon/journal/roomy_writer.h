// SPDX-License-Identifier: Apache-2.0
// The journal without its daemon: an append waits for room, and makes it by syncing home itself. So
// the power can fail in a checkpoint that came at any moment.
#pragma once

#include <cerrno>
#include <functional>
#include <utility>

#include "journal/writer.h"

namespace sluice::test {

class roomy_writer : public journal::writer {
 public:
  /// `sync_home` makes all home files safe: 0 or an errno.
  roomy_writer(journal::disk& d, journal::superblock const& s, journal::surroundings around,
               std::function<int()> sync_home, journal::rules const& keep = {})
      : writer(d, s, std::move(around), keep), sync_home_(std::move(sync_home)) {}

  /// 0 and `lsn`, or an errno; EFBIG where there can never be room.
  int append(journal::record const& r, std::uint64_t& lsn) {
    for (int empty = 0;;) {
      int failed = try_append(r, lsn);
      if (failed != ENOSPC || this->failed() != 0) return failed;
      // Another thread may have freed all in between; never so often.
      if (in_use() == 0) {
        if (++empty == 1000) return EFBIG;
        continue;
      }
      // Where nothing could be freed, all in use is still open.
      std::uint64_t const safe = durable();
      failed = safe == head() ? commit(tail()) : checkpoint(safe, sync_home_);
      if (failed != 0) return failed;
    }
  }

  using writer::checkpoint;
  int checkpoint() { return checkpoint(~std::uint64_t{0}, sync_home_); }

 private:
  std::function<int()> sync_home_;
};

}  // namespace sluice::test
