// SPDX-License-Identifier: Apache-2.0
// A job's epochs as seen from outside, for people. Nothing else relies on it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/after_area.h"

namespace sluice::cli {

/// A program that waits at a gate.
struct gate_wait {
  std::uint32_t pid = 0;
  std::uint64_t since_ns = 0;  // CLOCK_MONOTONIC
  std::string whom;            // it waits for; empty: nobody has said
};

struct job_look {
  uid_t uid = 0;
  bool is_known = false;  // the cluster knows of this node
  std::array<std::uint64_t, static_cast<unsigned>(abi::after_count::count)> counts = {};
  std::uint64_t waited_ns = 0;
  std::string reason;  // why one was refused last
  std::vector<gate_wait> waits;
  std::uint32_t no_slot = 0;  // gates that found none
};

/// None where there is no such file, or it is not ours to read, or no area of ours.
std::optional<job_look> look_at(std::string const& area_path);

}  // namespace sluice::cli
