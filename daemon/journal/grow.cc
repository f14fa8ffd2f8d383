// SPDX-License-Identifier: Apache-2.0
#include "journal/grow.h"

#include <cerrno>
#include <chrono>

namespace sluice::journal {

namespace {

constexpr std::uint64_t look_again_ns = 5'000'000;

}  // namespace

log_growth::~log_growth() {
  {
    std::lock_guard const held(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void log_growth::want() {
  if (bytes_max_ <= area_begin || thread_.joinable()) return;
  std::uint64_t const ring = log_.room(), wanted = (bytes_max_ - area_begin) / ring * ring;
  if (wanted > ring) thread_ = std::thread([this, ring, wanted] { run(ring, wanted); });
}

/// False: it is over.
bool log_growth::rest(std::uint64_t ns) {
  std::unique_lock held(mutex_);
  return !over_.wait_for(held, std::chrono::nanoseconds(ns), [&] { return is_over_; });
}

void log_growth::run(std::uint64_t ring_bytes, std::uint64_t ring_bytes_wanted) {
  // Half of the time the disk is theirs who wait for it.
  auto const pace = [this](std::uint64_t took_ns) { return rest(is_awaited_() ? took_ns : 0); };
  if (disk_.extend(area_begin + ring_bytes, area_begin + ring_bytes_wanted, pace) != 0) return;
  while (log_.grow(ring_bytes_wanted) == EAGAIN && rest(look_again_ns)) {
  }
}

}  // namespace sluice::journal
