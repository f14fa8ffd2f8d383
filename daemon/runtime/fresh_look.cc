// SPDX-License-Identifier: Apache-2.0
#include "runtime/fresh_look.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

namespace sluice::runtime {

void fresh_look::open() {
  std::lock_guard const hold(lock_);
  bell_ = descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  is_open_ = static_cast<bool>(bell_);
}

void fresh_look::taken(std::int64_t now_ns) {
  std::lock_guard const hold(lock_);
  std::uint64_t rung = 0;
  if (bell_) (void)!read(bell_.get(), &rung, sizeof rung);
  looked_ns_ = now_ns;
  taken_.notify_all();
}

void fresh_look::close() {
  std::lock_guard const hold(lock_);
  is_open_ = false;
  taken_.notify_all();
}

void fresh_look::ask(std::chrono::milliseconds patience) {
  std::unique_lock hold(lock_);
  std::int64_t const old_ns = steady_ns() - fresh_ns;
  if (!is_open_ || looked_ns_ > old_ns) return;
  std::uint64_t const one = 1;
  (void)!write(bell_.get(), &one, sizeof one);
  taken_.wait_for(hold, patience, [&] { return !is_open_ || looked_ns_ > old_ns; });
}

}  // namespace sluice::runtime
