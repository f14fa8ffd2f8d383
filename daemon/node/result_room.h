// SPDX-License-Identifier: Apache-2.0
// Which results of jobs that are over go when one more comes. Users share the folder, and a job
// leaves a file in it for each of its ends: whoever ends most gives up the most.
// What stays true: nobody loses a result to one who then has as many or more. Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::node {

inline constexpr std::size_t most_results = 512;
/// Of one job. A larger result lacks the parts that make it so, and says which.
inline constexpr std::size_t most_result_bytes = 128 << 10;
inline constexpr std::size_t most_bytes_of_an_owner = 64 * most_result_bytes;

struct kept_result {
  std::string path;
  uid_t owner = 0;  // base/owners.h
  std::int64_t changed_ns = 0;
  std::size_t bytes = 0;
};

/// Paths of those that make room for one of `owner`.
std::vector<std::string> results_to_go(std::vector<kept_result> kept, uid_t owner);

}  // namespace sluice::node
