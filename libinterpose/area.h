// SPDX-License-Identifier: Apache-2.0
// Maps the files of a job's directory: the segment, and the areas beside it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "sys.h"

namespace sluice {

/// The file `leaf` in the directory of `segment_path`, whose last part is replaced; shared, to be
/// written. A negative error number when there is none, or a shorter one. The file has its own
/// size, `file_bytes`; what lies after its end is never touched.
inline long map_beside(char* segment_path, char const* leaf, std::size_t bytes,
                       std::uint64_t& file_bytes) {
  unsigned slash = 0;
  for (unsigned i = 0; segment_path[i] != 0; ++i)
    if (segment_path[i] == '/') slash = i + 1;
  for (unsigned i = 0; i == 0 || leaf[i - 1] != 0; ++i) segment_path[slash + i] = leaf[i];
  long const fd = sys::call(SYS_openat, sys::at_cwd, sys::as_long(segment_path),
                            O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
  if (sys::failed(fd)) return fd;
  long const size = sys::call(SYS_lseek, fd, 0, 2 /* SEEK_END */);
  long at = -1;
  if (size >= static_cast<long>(bytes))
    at = sys::map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
  sys::call(SYS_close, fd);
  file_bytes = static_cast<std::uint64_t>(size);
  return at;
}

/// The same as an Area, unless `refuse(area, file_bytes)` says what is wrong with it: then null.
/// `leaf` has at most as many characters as `segment`.
template <class Area, class Refuse>
Area* map_area(char* segment_path, char const* leaf, Refuse&& refuse) {
  std::uint64_t file_bytes = 0;
  long const at = map_beside(segment_path, leaf, sizeof(Area), file_bytes);
  if (sys::failed(at)) return nullptr;
  auto* const area = reinterpret_cast<Area*>(at);
  if (refuse(*area, file_bytes) == nullptr) return area;
  sys::call(SYS_munmap, at, sizeof(Area));
  return nullptr;
}

}  // namespace sluice
