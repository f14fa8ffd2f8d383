// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/beside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/installed.h"

namespace sluice::cli {

void become_beside(std::string const& name, std::vector<std::string> const& arguments) {
  std::string const path = find_beside(name);
  if (path.empty())
    throw sluice_error(
        fmt::format("{0} is neither in {1} nor in {2}: run `make`, or install all of sluice", name,
                    own_folder(),
                    std::filesystem::path(own_folder() + "/../sbin").lexically_normal().string()));
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (auto const& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  throw sluice_error(fmt::format("cannot execute {}: {}", path, std::strerror(errno)));
}

}  // namespace sluice::cli
