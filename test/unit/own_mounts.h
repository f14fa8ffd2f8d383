// SPDX-License-Identifier: Apache-2.0
// What we mount is ours alone. A namespace of mounts that another program makes meanwhile would get
// a copy of it, and hold the file system when we have long unmounted it.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace sluice::test {

/// Call before other threads exist that look at mounts. Nothing happens without root.
inline void own_mounts() {
  if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
}

}  // namespace sluice::test
