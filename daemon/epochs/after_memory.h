// SPDX-License-Identifier: Apache-2.0
// The area of epochs of a job, as the loop has it: see segment/job_memory.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "abi/after_area.h"
#include "base/area_map.h"
#include "segment/far_memory.h"

namespace sluice::epochs {

class after_memory {
 public:
  /// Null: there is none of ours. `owner`, `far`: as of job_memory. Throws when it does not come.
  static std::unique_ptr<after_memory> open(std::string const& path, uid_t uid, uid_t owner,
                                            segment::far_memory* far);

  foreign<abi::after_area>& operator*() const {
    return far_ ? far_->copy<abi::after_area>() : **own_;
  }
  foreign<abi::after_area>* operator->() const { return &**this; }
  bool is_broken() const { return far_ ? far_->is_broken() : own_->is_broken(); }
  /// All changes are to be seen in it.
  bool is_current() const { return !far_ || far_->is_current(); }
  segment::far_region* far() const { return far_.get(); }

  void change(segment::memory_change const& c) {
    if (far_)
      far_->change(c);
    else
      segment::apply(**own_, c);
  }

 private:
  std::unique_ptr<area_map<abi::after_area>> own_;
  std::unique_ptr<segment::far_region> far_;
};

}  // namespace sluice::epochs
