// SPDX-License-Identifier: Apache-2.0
// A file that appears complete, or not at all: it is written beside its name and renamed at the
// end. Every verb writes through it, so a refused or failed verb leaves the old file alone.
// What stays true, for root above all: nothing is written but the new file, whoever else may write
// in its directory. No link of a stranger is followed where everybody may make one, and of a
// stranger's file not even the mode is taken over.
#pragma once

#include <ext/stdio_filebuf.h>

#include <memory>
#include <ostream>
#include <string>

#include "base/descriptor.h"

namespace sluice {

/// Throws when a file of this name cannot be made or written; what is there stays as it is, so a
/// verb can ask before it begins its work.
void check_output_file(std::string const& path);

/// The same file, there already or not, by a name without links. A usage error where a stranger's
/// link leads on.
std::string without_links(std::string const& path);

class output_file {
 public:
  /// "-" is standard output. Throws when the file cannot be made.
  explicit output_file(std::string const& path);
  /// Not committed: nothing is left behind.
  ~output_file();
  output_file(output_file const&) = delete;
  output_file& operator=(output_file const&) = delete;

  std::ostream& stream() { return to_; }
  /// Throws when not all of it could be written.
  void commit();

 private:
  std::string path_;   // as it was called
  descriptor folder_;  // of both names
  std::string name_;
  std::string temporary_;  // empty: written in place (standard output, a device)
  std::unique_ptr<__gnu_cxx::stdio_filebuf<char>> file_;  // null: standard output
  std::ostream to_{nullptr};
};

}  // namespace sluice
