// SPDX-License-Identifier: Apache-2.0
#include "journal/pacing.h"

#include <algorithm>

namespace sluice::journal {

namespace {

constexpr std::uint64_t patience_max_ns = 1'000'000;
constexpr unsigned skip_max = 64;
constexpr std::uint64_t least_pages = 8, most_pages = 1024;
constexpr std::uint64_t piece_min_ns = 200'000;
constexpr std::uint64_t calm_share = 3;  // pauses are so many times as long as pieces

}  // namespace

std::uint64_t gathering::patience_ns(std::size_t queued) const {
  if (queued >= expected_ || skip_ != 0) return 0;
  return std::min(batch_ns_ / 2, patience_max_ns);
}

void gathering::waited(std::size_t before, std::size_t after, std::uint64_t waited_ns) {
  // Worth it when more are served per time than without the wait.
  bool const was_good = (after - before) * batch_ns_ > before * waited_ns;
  vain_ = was_good ? 0 : std::min(vain_ + 1, 6u);
  if (!was_good) skip_ = std::min(1u << vain_, skip_max) + 1;
}

void gathering::written(std::size_t served, std::size_t queued, std::uint64_t took_ns) {
  expected_ = served + queued;
  batch_ns_ = batch_ns_ == 0 ? took_ns : (batch_ns_ * 7 + took_ns) / 8;
  if (skip_ != 0) --skip_;
}

void home_pace::wrote(std::uint64_t took_ns, std::uint64_t batch_ns) {
  std::uint64_t const aim = std::max(batch_ns, piece_min_ns);
  if (took_ns > aim) pages_ = std::max(pages_ / 2, least_pages);
  if (took_ns < aim / 2) pages_ = std::min(pages_ * 2, most_pages);
}

std::uint64_t home_pace::pause_ns(std::uint64_t took_ns, std::uint64_t used, std::uint64_t room,
                                  bool somebody_waits) {
  if (!somebody_waits) return 0;
  std::uint64_t const calm = room / 2, full = room / 4 * 3;
  if (used >= full) return 0;
  std::uint64_t const most = took_ns * calm_share;
  return used <= calm ? most : most * (full - used) / std::max<std::uint64_t>(full - calm, 1);
}

}  // namespace sluice::journal
