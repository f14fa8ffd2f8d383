// SPDX-License-Identifier: Apache-2.0
// Any bytes may be what `sluice trace convert --from jsonl` is given.
#include "trace_formats.h"

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  return sluice::trace::fuzz_converter(sluice::trace::from_jsonl, "node", data, size);
}
