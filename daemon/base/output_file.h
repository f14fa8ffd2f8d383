// SPDX-License-Identifier: Apache-2.0
// A file that appears complete, or not at all: it is written beside its name and renamed at the
// end. Every verb writes through it, so a refused or failed verb leaves the old file alone.
#pragma once

#include <fstream>
#include <ostream>
#include <string>

namespace sluice {

/// Throws when a file of this name cannot be made or written; what is there stays as it is, so a
/// verb can ask before it begins its work.
void check_output_file(std::string const& path);

class output_file {
 public:
  /// "-" is standard output. Throws when the file cannot be made.
  explicit output_file(std::string const& path);
  /// Not committed: nothing is left behind.
  ~output_file();
  output_file(output_file const&) = delete;
  output_file& operator=(output_file const&) = delete;

  std::ostream& stream() { return *to_; }
  /// Throws when not all of it could be written.
  void commit();

 private:
  std::string path_;
  std::string temporary_;  // empty: written in place (standard output, a device)
  std::ofstream file_;
  std::ostream* to_ = nullptr;
};

}  // namespace sluice
