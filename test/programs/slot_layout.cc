// SPDX-License-Identifier: Apache-2.0
// Where the near process slots of a segment begin, and the size of one: for tests that write into
// them.
#include <cstddef>
#include <cstdio>

#include "abi/segment.h"

int main() {
  std::printf("%zu %zu\n", offsetof(sluice::abi::segment, near_process),
              sizeof(sluice::abi::process_slot));
}
