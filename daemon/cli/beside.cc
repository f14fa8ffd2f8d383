// SPDX-License-Identifier: Apache-2.0
#include "cli/beside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "policy/error.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

}  // namespace

std::string find_beside(std::string const& name) {
  fs::path const folder = own_folder();
  for (char const* place : {".", "../sbin", "../libexec/sluice", "../lib/sluice"})
    if (fs::path const path = (folder / place / name).lexically_normal();
        access(path.c_str(), X_OK) == 0)
      return path;
  return {};
}

void become_beside(std::string const& name, std::vector<std::string> const& arguments) {
  std::string const path = find_beside(name);
  if (path.empty())
    throw sluice_error(fmt::format("{0} is neither in {1} nor in {2}; it is installed with sluice",
                                   name, own_folder().string(),
                                   (own_folder() / "../sbin").lexically_normal().string()));
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (auto const& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  throw sluice_error(fmt::format("cannot execute {}: {}", path, std::strerror(errno)));
}

}  // namespace sluice::cli
