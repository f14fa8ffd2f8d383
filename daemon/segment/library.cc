// SPDX-License-Identifier: Apache-2.0
#include "segment/library.h"

#include <fmt/format.h>

#include <filesystem>

#include "policy/error.h"

namespace sluice::segment {

std::string find_library() {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path const prefix = fs::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
  for (char const* place : {"lib/libinterpose.so", "lib/sluice/libinterpose.so"})
    if (fs::exists(prefix / place, failed)) return prefix / place;
  throw sluice_error(
      fmt::format("libinterpose.so is neither in {0}/lib nor in {0}/lib/sluice", prefix.string()));
}

}  // namespace sluice::segment
