// SPDX-License-Identifier: Apache-2.0
// Writes pages of home files to their disk before a checkpoint asks for all of them at once: in
// pieces, each waited for, so that the journal, on the same disk perhaps, never waits in a long
// queue. It promises nothing: only the sync of a checkpoint says what is durable.
// What stays true: the kernel reports only once that a page was refused. Here nobody would hear it,
// and the next sync of the file would not be told any more. So we wait in a way that does not ask.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "journal/held_file.h"
#include "journal/pacing.h"

namespace sluice::journal {

struct written_home {
  std::shared_ptr<held_file> file;
  page_set pages;
};

class home_writer {
 public:
  /// `pause_ns(took)` after a piece that took so long; `batch_ns()`: what a batch of the journal
  /// takes.
  home_writer(std::function<std::uint64_t(std::uint64_t)> pause_ns,
              std::function<std::uint64_t()> batch_ns)
      : pause_ns_(std::move(pause_ns)), batch_ns_(std::move(batch_ns)) {}

  /// Pages of files that were removed are left out, and those on btrfs, which writes what lies
  /// beside them as well: what others wrote there would look clean, and not be durable.
  void write(std::vector<written_home> const& all);

 private:
  struct part {
    int fd;
    std::uint64_t first, end;
  };
  void add(int fd, std::uint64_t first, std::uint64_t end);
  void write_piece();
  void wait_for_piece() const;

  std::function<std::uint64_t(std::uint64_t)> const pause_ns_;
  std::function<std::uint64_t()> const batch_ns_;
  home_pace pace_;
  std::vector<part> piece_;
  std::uint64_t piece_pages_ = 0;
};

}  // namespace sluice::journal
