// SPDX-License-Identifier: Apache-2.0
// What the command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::calibrate {

struct calibrate_options {
  std::string path;
  std::string output;
  double budget = 1;              // the part of the time in which there is I/O
  std::vector<std::string> only;  // names of steps begin so; empty: all
  std::uint64_t size = 0;         // of the file; 0: as much as is useful
  unsigned processes = 2;
  bool is_short = false;
  bool restart = false;
  bool quiet = false;
};
/// The exit status.
int calibrate(calibrate_options const& o);

struct show_options {
  std::vector<std::string> files;
  bool json = false;
  std::string html;  // a file for the page
};
int show(show_options const& o);

struct check_options {
  std::string file, path;
  bool json = false;
};
/// 0: it belongs there and nothing has changed; 1: the device has changed. Throws a usage error
/// when it does not belong there.
int check(check_options const& o);

}  // namespace sluice::calibrate
