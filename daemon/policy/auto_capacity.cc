// SPDX-License-Identifier: Apache-2.0
#include "policy/auto_capacity.h"

#include <fmt/format.h>

#include "base/duration.h"

namespace sluice::policy {

std::string latency_in_words(auto_capacity const& a) {
  return fmt::format("at most {:g} % of the calls may take longer than {}", a.slow_ppm / 1e4,
                     duration_text(a.wanted_ns));
}

}  // namespace sluice::policy
