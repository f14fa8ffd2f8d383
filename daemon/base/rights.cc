// SPDX-License-Identifier: Apache-2.0
#include "base/rights.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace sluice {

namespace {

std::atomic<bool> are_lowered = false;

/// Of the calling thread.
struct capability_sets {
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct half[2] = {};

  bool read() { return syscall(SYS_capget, &head, half) == 0; }
  bool write() { return syscall(SYS_capset, &head, half) == 0; }
};

}  // namespace

void lower_rights() {
  capability_sets s;
  if (!s.read()) return;
  for (auto& half : s.half) half.effective = 0;
  are_lowered = s.write();
}

raised_rights::raised_rights() {
  if (!are_lowered.load(std::memory_order_relaxed)) return;
  int const error = errno;
  capability_sets s;
  if (s.read()) {
    for (int i = 0; i < 2; ++i) {
      before_[i] = s.half[i].effective;
      s.half[i].effective = s.half[i].permitted;
    }
    has_raised_ = s.write();
  }
  errno = error;
}

raised_rights::~raised_rights() {
  if (!has_raised_) return;
  int const error = errno;
  capability_sets s;
  if (s.read()) {
    for (int i = 0; i < 2; ++i) s.half[i].effective = before_[i];
    s.write();
  }
  errno = error;
}

}  // namespace sluice
