// SPDX-License-Identifier: Apache-2.0
// Demand over time as jobs would have it if nobody held them back, recorded once and then fed to
// every algorithm. A stream is a job on a node. It either offers new work all the time, of which
// what is not served is not done (threads that wait do nothing else), or its work piles up.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {

inline constexpr std::int64_t step_ns = 5'000'000;
inline constexpr std::uint32_t steps_per_s = 200;

struct demand_stream {
  std::uint32_t job = 0;
  std::uint32_t threads = 16;
  bool piles_up = false;
};

struct demand_change {
  std::uint32_t step = 0;
  std::uint32_t stream = 0;
  std::uint64_t wanted = 0;  // tokens/s from this step on
};

struct demand_series {
  std::string name;
  std::uint64_t capacity = 220'000;  // tokens/s
  std::uint32_t steps = 0;
  std::uint32_t jobs = 0;
  std::vector<demand_stream> streams;
  std::vector<demand_change> changes;  // by step
};

/// `ramp`, `ramplong`, `rampslack`, `mix`, `light`, `many`; the same for the same seed, everywhere.
demand_series make_demand(std::string_view scenario, std::uint64_t seed);

void write_demand(std::ostream& out, demand_series const& series);

/// Throws std::runtime_error if it is not what write_demand() writes.
demand_series read_demand(std::istream& in);

}  // namespace sluice::sim
