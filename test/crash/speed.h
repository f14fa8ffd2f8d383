// SPDX-License-Identifier: Apache-2.0
// How fast: the same work with the kernel's fsync and with the daemon's, in turns, on a disk whose
// writes and flushes take a known time.
#pragma once

#include <string>

#include "recorder.h"

namespace sluice::crash {

struct speed_options {
  std::string dir;      // the file system on the model disk
  std::string beside;   // a directory elsewhere
  std::string program;  // sluice-order
  unsigned rounds = 3;
  unsigned milliseconds = 1500;  // of each
};

/// Prints a table, a row for each work and number of threads. Throws std::runtime_error.
void measure(speed_options const& o, unsigned flush_us);

}  // namespace sluice::crash
