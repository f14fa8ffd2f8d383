// SPDX-License-Identifier: Apache-2.0
// The process behind the recorded disks: files in a FUSE file system, and those that programs write
// to, to tell it something.
// What stays true: it has no part in the mounts of those whom it serves. The last process of a
// namespace of mounts unmounts what is left there, and for a file system on one of its own disks it
// would wait for itself: then every sync(2) on the machine hangs.
#pragma once

#include <string>

#include "recorder.h"

namespace sluice::crash {

inline constexpr char const* disk_names[most_disks] = {"/disk", "/disk1", "/disk2", "/disk3"};

struct served_disks {
  shared* state;
  int image_fd;
  std::byte* arena;
  disk_model model;
};

/// Mounts it at `dir`, for who forked this process, and serves until that one ends.
[[noreturn]] void serve_disks(std::string dir, served_disks const& what);

/// Into what is remembered; without `bytes` of a write they are zeros.
void append(shared* s, std::byte* arena, entry e, void const* bytes);

}  // namespace sluice::crash
