// SPDX-License-Identifier: Apache-2.0
// What a loss leaves for who looks for its cause. Most come once in thousands of states, and no run
// is like another, so all that is needed is kept at once.
#pragma once

#include <cstdint>
#include <string>

#include "recorder.h"

namespace sluice::crash {

/// One power cut, to be made again.
struct power_cut {
  std::size_t count;
  std::uint64_t seed;
  int subset;
};

/// If the environment has a directory KEEP and nothing is there yet: `entries` (what happened to
/// the disks when, a line each), `image` (all disks, one behind the other, as the cut left them, at
/// the offsets that the entries name), the kernel's messages, and what lies in `beside`: what was
/// said, and the report. Of a state that was cut again it is the first cut. Nothing may be mounted.
void keep_loss(recorder& disk, power_cut const& cut, std::string const& beside);

}  // namespace sluice::crash
