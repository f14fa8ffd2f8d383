// SPDX-License-Identifier: Apache-2.0
#include "extras.h"

namespace sluice {

namespace {

// In the order in which they stand before libc: the last is called first.
constinit extra const* const extras[] = {&small::hooks, &order::hooks, &epochs::hooks,
                                         &gather::hooks, &context::hooks};
constinit std::uint32_t begun = 0;  // mask of abi::area

}  // namespace

bool begin_extras(std::uint32_t areas, char* segment_path) {
  for (extra const* one : extras)
    if ((areas & one->beside) != 0 && one->begin(segment_path)) begun |= one->beside;
  return begun != 0;
}

void each_extra(void (*extra::*hook)()) {
  for (extra const* one : extras)
    if ((begun & one->beside) != 0 && one->*hook != nullptr) (one->*hook)();
}

std::size_t extra_bytes(std::uint16_t extra::*kind) {
  std::size_t pages = 0;
  for (extra const* one : extras) pages += one->*kind;
  return pages * extra_page;
}

}  // namespace sluice
