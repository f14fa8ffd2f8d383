// SPDX-License-Identifier: Apache-2.0
#include "base/installed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace sluice {

namespace fs = std::filesystem;

std::string own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

std::string find_library() {
  std::error_code failed;
  fs::path const prefix = fs::path(own_folder()).parent_path();
  for (char const* place : {"lib/libinterpose.so", "lib/sluice/libinterpose.so"})
    if (fs::exists(prefix / place, failed)) return prefix / place;
  throw sluice_error(
      fmt::format("libinterpose.so is neither in {0}/lib nor in {0}/lib/sluice", prefix.string()));
}

std::string find_beside(std::string const& name) {
  fs::path const folder = own_folder();
  for (char const* place : {".", "../sbin", "../libexec/sluice", "../lib/sluice"})
    if (fs::path const path = (folder / place / name).lexically_normal();
        access(path.c_str(), X_OK) == 0)
      return path;
  return {};
}

}  // namespace sluice
