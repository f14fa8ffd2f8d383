// SPDX-License-Identifier: Apache-2.0
// Any bytes may be a CSV trace.
#include "trace_formats.h"

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<char const*>(data), size));
  try {
    sluice::trace::check(sluice::trace::read(text, "fuzz"));
  } catch (sluice::error const& e) {
    if (e.status() != sluice::exit_usage) std::abort();
  }
  return 0;
}
