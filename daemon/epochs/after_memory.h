// SPDX-License-Identifier: Apache-2.0
// The area of epochs of a job, as the loop has it: see segment/loop_memory.h.
#pragma once

#include <memory>
#include <string>

#include "abi/after_area.h"
#include "base/area_map.h"
#include "segment/loop_memory.h"

namespace sluice::epochs {

class after_memory : public segment::loop_memory<area_map<abi::after_area>, abi::after_area> {
 public:
  using loop_memory::loop_memory;

  /// Null: there is none of ours. `owner`, `far`: as of job_memory. Throws when it does not come.
  static std::unique_ptr<after_memory> open(std::string const& path, uid_t uid, uid_t owner,
                                            segment::far_memory* far);
};

}  // namespace sluice::epochs
