// SPDX-License-Identifier: Apache-2.0
// A file that is there complete, or not at all: written beside its name, renamed at the end.
#pragma once

#include <fstream>
#include <ostream>
#include <string>

namespace sluice::trace {

class output {
 public:
  /// "-" is standard output. Throws when the file cannot be made.
  explicit output(std::string const& path);
  /// Not committed: nothing is left behind.
  ~output();
  output(output const&) = delete;
  output& operator=(output const&) = delete;

  std::ostream& stream() { return *to_; }
  /// Throws when not all of it could be written.
  void commit();

 private:
  std::string path_;
  std::string temporary_;  // empty: written in place (standard output, a device)
  std::ofstream file_;
  std::ostream* to_ = nullptr;
};

}  // namespace sluice::trace
