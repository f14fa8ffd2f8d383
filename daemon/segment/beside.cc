// SPDX-License-Identifier: Apache-2.0
#include "segment/beside.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/foreign_file.h"

namespace sluice::segment {

namespace {

/// Read, not mapped: whoever shortens the file meanwhile cannot harm us.
bool read_all(int fd, std::vector<std::byte>& to) {
  std::size_t got = 0;
  while (got < to.size()) {
    ssize_t const n = pread(fd, to.data() + got, to.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

bool read_afar(descriptor file, far_region& far, region_kind kind, std::vector<std::byte>& to) try {
  auto const held = far.hold_beside(std::move(file), kind);
  std::memcpy(to.data(), held->bytes(), to.size());
  return !held->is_broken();
} catch (error const&) {
  return false;  // it does not come
}

}  // namespace

file_front read_front(std::string const& path, job_files const& files, region_kind kind) {
  int const access = files.far == nullptr ? O_RDONLY : O_RDWR;  // who maps it maps all alike
  foreign_file file = open_foreign(path, access, files.owner);
  file_front out;
  out.file_bytes = file ? static_cast<std::uint64_t>(file.st.st_size) : 0;
  if (out.file_bytes < bytes_of(kind)) return out;
  out.bytes.resize(bytes_of(kind));
  bool const is_read = files.far == nullptr
                           ? read_all(file.fd.get(), out.bytes)
                           : read_afar(std::move(file.fd), *files.far, kind, out.bytes);
  if (!is_read) out.bytes.clear();
  return out;
}

}  // namespace sluice::segment
