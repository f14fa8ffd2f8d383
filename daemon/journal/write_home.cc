// SPDX-License-Identifier: Apache-2.0
#include "journal/write_home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t look_every_ns = 50'000, wait_max_ns = 1'000'000'000;

void nap(std::uint64_t ns) {
  timespec const t = timespec_of(static_cast<std::int64_t>(ns));
  nanosleep(&t, nullptr);
}

}  // namespace

void home_writer::write(std::vector<written_home> const& all) {
  for (auto const& one : all) {
    struct stat st = {};
    int const fd = one.file->fd.get();
    if (fstat(fd, &st) != 0 || st.st_nlink == 0) continue;
    for (auto const& [first, end] : one.pages.all()) add(fd, first, end);
  }
  write_piece();
}

void home_writer::add(int fd, std::uint64_t first, std::uint64_t end) {
  while (first < end) {
    std::uint64_t const n = std::min(end - first, pace_.pages() - piece_pages_);
    piece_.push_back({fd, first, first + n});
    piece_pages_ += n;
    first += n;
    if (piece_pages_ >= pace_.pages()) write_piece();
  }
}

void home_writer::wait_for_piece() const {
  std::uint64_t const until = steady_count_ns() + wait_max_ns;
  for (auto const& p : piece_)
    while (pages_under_way(p.fd, p.first, p.end) > 0 && steady_count_ns() < until)
      nap(look_every_ns);
}

void home_writer::write_piece() {
  if (piece_.empty()) return;
  std::uint64_t const begin = steady_count_ns();
  // The first round leaves out what was just being written, an older version of it.
  for (int round = 0; round < 2; ++round) {
    for (auto const& p : piece_)
      sync_file_range(p.fd, static_cast<off64_t>(p.first * page_bytes),
                      static_cast<off64_t>((p.end - p.first) * page_bytes), SYNC_FILE_RANGE_WRITE);
    wait_for_piece();
  }
  std::uint64_t const took = steady_count_ns() - begin;
  bool const is_whole = piece_pages_ >= pace_.pages();
  piece_.clear();
  piece_pages_ = 0;
  if (is_whole) pace_.wrote(took, batch_ns_());
  if (std::uint64_t const pause = pause_ns_(took); pause != 0) nap(pause);
}

}  // namespace sluice::journal
