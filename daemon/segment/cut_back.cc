// SPDX-License-Identifier: Apache-2.0
#include "segment/cut_back.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "abi/path_area.h"
#include "abi/segment.h"
#include "base/foreign_file.h"

namespace sluice::segment {

namespace {

/// Room beyond the end counts too; some, a file system may give by itself.
bool is_grown(struct stat const& st, std::size_t bytes) {
  constexpr std::size_t slack = std::size_t{4} << 20;
  auto const size = static_cast<std::size_t>(st.st_size);
  return size > bytes || (size == bytes && std::size_t(st.st_blocks) * 512 > bytes + slack);
}

bool cut_back(std::string const& path, std::size_t bytes, bool is_order) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || !is_grown(st, bytes)) return false;
  foreign_file const file = open_foreign(path, O_RDWR, any_owner);
  if (!file) return false;  // it is looked at again
  descriptor const& fd = file.fd;
  abi::order_header h = {};
  // Of another version it may be longer by right.
  if (is_order && (pread(fd.get(), static_cast<void*>(&h), sizeof h, 0) != ssize_t(sizeof h) ||
                   h.layout != abi::order_layout_version))
    return false;
  struct stat after = {};
  return ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 && fstat(fd.get(), &after) == 0 &&
         (after.st_size != st.st_size || after.st_blocks < st.st_blocks);
}

}  // namespace

bool cut_back(std::string const& job_dir) {
  bool const segment = cut_back(job_dir + "/segment", sizeof(abi::segment), false);
  bool const order = cut_back(job_dir + "/order", sizeof(abi::order_area), true);
  bool const after = cut_back(job_dir + "/after", sizeof(abi::after_area), false);
  bool const paths = cut_back(job_dir + "/paths", sizeof(abi::path_area), false);
  return segment || order || after || paths;
}

}  // namespace sluice::segment
