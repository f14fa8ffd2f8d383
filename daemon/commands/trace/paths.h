// SPDX-License-Identifier: Apache-2.0
// Decides which files of a recorded call count: those of real file systems, below a directory if
// one is given. A trace does not count calls that sluice itself does not limit.
#pragma once

#include <string>
#include <string_view>

namespace sluice::trace {

class path_filter {
 public:
  /// Empty: any directory. Throws a usage error when it is not absolute.
  explicit path_filter(std::string below);

  /// `path` may be relative to `directory`, which may be unknown (empty).
  bool counts(std::string_view path, std::string_view directory) const;

 private:
  std::string below_;  // ends in /
};

}  // namespace sluice::trace
