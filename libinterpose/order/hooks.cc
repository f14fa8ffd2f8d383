// SPDX-License-Identifier: Apache-2.0
// What the stage knows of durable and ordered targets: one row of extras.h.
#include "abi/order_area.h"
#include "area.h"
#include "extras.h"
#include "order/barriers.h"
#include "order/notes.h"

namespace sluice::order {

namespace {

bool begin(char* segment_path) {
  auto* const area = map_area<abi::order_area>(
      segment_path, "order",
      [](auto const& a, std::uint64_t bytes) { return abi::refuse_reason(a, bytes); });
  if (area == nullptr) return false;
  durable.targets = area->head.durable_targets;
  durable.ordered = area->head.ordered_targets & durable.targets;
  durable.shared = (area->head.job_streams | area->head.path_streams) & durable.targets;
  durable.area = area;
  verify_and_remember = verify_durable;
  return true;
}

void leave() {
  if (!self.is_vfork_child) wait_for_barriers();
  leave_pending();
}

}  // namespace

alignas(extra) constinit extra const hooks = {.beside = abi::order_beside,
                                              .shared_pages = extra_pages(sizeof(abi::order_area)),
                                              .begin = begin,
                                              .stand_before_libc = stand_between,
                                              .leave = leave,
                                              .go_blind = go_blind,
                                              .see_again = see_again};

}  // namespace sluice::order
