// SPDX-License-Identifier: Apache-2.0
// Files beside a segment that its user owns, and of which a daemon reads the beginning once.
// What stays true: the loop does not read such a file of another user itself. A read waits for the
// lock of a page, which its user can hold up as he can a page fault: see far_memory.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "segment/far_memory.h"

namespace sluice::segment {

/// Where the files of a job are, and who reads them.
struct job_files {
  std::string segment_path;
  std::int64_t owner;         // whose they must be, or any_owner
  far_region* far = nullptr;  // the job's segment, whose process reads them; null: we do
};

struct file_front {
  std::vector<std::byte> bytes;  // as many as bytes_of() its kind; none: they are not to be had
  std::uint64_t file_bytes = 0;  // length of the file
};

/// Of the file at `path`, one of `files`.
file_front read_front(std::string const& path, job_files const& files, region_kind kind);

}  // namespace sluice::segment
