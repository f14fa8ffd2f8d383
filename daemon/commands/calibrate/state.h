// SPDX-License-Identifier: Apache-2.0
// The file that an interrupted calibration leaves beside its output, so that the next one goes on
// where it was: a line that names the calibration, then a line per sample. A line that was cut off
// is measured again. The file also names the directories that were made, so that those of a process
// that was killed are removed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "commands/calibrate/sample.h"

namespace sluice::calibrate {

struct left_directory {
  std::string path;
  std::uint64_t inode = 0;
};

/// The lines, as far as they are sound. Pure.
struct state {
  std::string about;  // the first line; empty: there is none
  std::vector<sample> samples;
  std::vector<left_directory> directories;
};
state parse_state(std::string_view text);

class state_file {
 public:
  /// Opens it or makes it. `about` says what is calibrated; a file that says something else is
  /// refused, unless `restart`: then it is begun anew. Empty `path`: nothing is kept. Throws usage
  /// errors.
  state_file(std::string const& path, std::string const& about, bool restart);

  /// Of a calibration that measured nothing nothing is kept.
  ~state_file();
  state_file(state_file const&) = delete;
  state_file& operator=(state_file const&) = delete;

  std::vector<sample> const& samples() const { return state_.samples; }
  void add(sample const& s);
  void add(left_directory const& d);
  /// The calibration is done.
  void remove();

 private:
  void append(std::string const& line);

  std::string path_;
  descriptor fd_;
  state state_;
};

}  // namespace sluice::calibrate
