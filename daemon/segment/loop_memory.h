// SPDX-License-Identifier: Apache-2.0
// Memory of a job, as the loop has it: mapped where the job is our own user's, else the copy of
// far_memory.h. What it reads and changes is the same for both.
#pragma once

#include <memory>
#include <utility>

#include "segment/far_memory.h"

namespace sluice::segment {

/// `Own`: a mapping of an Area.
template <class Own, class Area>
class loop_memory {
 public:
  explicit loop_memory(std::unique_ptr<Own> own) : own_(std::move(own)) {}
  explicit loop_memory(std::unique_ptr<far_region> far) : far_(std::move(far)) {}

  /// As it is, or as it was when it was looked at last.
  foreign<Area>& operator*() const { return far_ ? far_->copy<Area>() : **own_; }
  foreign<Area>* operator->() const { return &**this; }
  bool is_broken() const { return far_ ? far_->is_broken() : own_->is_broken(); }
  /// To be looked at; null: it is always seen as it is.
  far_region* far() const { return far_.get(); }
  /// See far_region.
  bool is_current() const { return !far_ || far_->is_current(); }
  void ask_anew() const {
    if (far_) far_->ask_anew();
  }

  void change(memory_change const& c) {
    if (far_)
      far_->change(c);
    else
      apply(**own_, c);
  }

 private:
  std::unique_ptr<Own> own_;
  std::unique_ptr<far_region> far_;
};

}  // namespace sluice::segment
