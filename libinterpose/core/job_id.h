// SPDX-License-Identifier: Apache-2.0
// Names one job, by whoever hands it out: 128 bits, so that a cryptographic hash of a user and a
// name fits. Nobody finds two names with one id, so no user can make his job stand for another's.
#pragma once

#include <compare>
#include <cstdint>

namespace sluice::core {

struct job_id {
  std::uint64_t high = 0, low = 0;

  constexpr job_id() = default;  // 0: no job
  /// Of who numbers his jobs himself.
  constexpr job_id(std::uint64_t number) : low(number) {}

  auto operator<=>(job_id const&) const = default;
};

}  // namespace sluice::core
