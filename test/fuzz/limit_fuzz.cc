// SPDX-License-Identifier: Apache-2.0
// Any text may be given to --limit: it is accepted or refused with a usage error, nothing else.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "policy/limit.h"

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  try {
    auto const limit = sluice::policy::parse_limit({reinterpret_cast<char const*>(data), size});
    if (limit.ops == 0) std::abort();
    sluice::policy::rate_text(limit.amount.unit, limit.amount.rate_q40);
  } catch (sluice::error const& e) {
    if (e.status() != sluice::exit_usage) std::abort();
  }
  return 0;
}
