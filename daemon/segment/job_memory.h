// SPDX-License-Identifier: Apache-2.0
// The memory of a job, as the loop has it: mapped where the job is our own user's, else the copy of
// far_memory.h. What it reads and writes is the same for both.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "segment/curve.h"
#include "segment/far_memory.h"
#include "segment/mapping.h"

namespace sluice::segment {

enum class job_age { older, made_now };

class job_memory {
 public:
  explicit job_memory(mapping own) : own_(std::move(own)) {}
  explicit job_memory(std::unique_ptr<far_region> far) : far_(std::move(far)) {}

  /// Opens the segment of a job of `uid`, one of the users of `owner`. `far`: null, where all are
  /// our own. Throws when there is none, it is not one of ours, or does not come.
  static job_memory open(std::string const& path, uid_t uid, uid_t owner, far_memory* far,
                         job_age age);

  /// As it is, or as it was when it was looked at last.
  foreign<abi::segment>& operator*() const { return far_ ? far_->copy<abi::segment>() : **own_; }
  bool is_broken() const { return far_ ? far_->is_broken() : own_->is_broken(); }
  /// To be looked at; null: it is always seen as it is.
  far_region* far() const { return far_.get(); }

  void change(memory_change const& c) {
    if (far_)
      far_->change(c);
    else
      apply(**own_, c);
  }
  void write_curve(unsigned channel, core::curve_settings const& curve, std::int64_t now_ns) {
    change({.what = touch::curve, .index = channel, .at_ns = now_ns, .curve = curve});
  }
  curve_writer writer() {
    return [this](unsigned channel, core::curve_settings const& curve, std::int64_t now_ns) {
      write_curve(channel, curve, now_ns);
    };
  }
  void set_holder(std::uint64_t word) { change({.what = touch::holder, .word = word}); }

 private:
  std::optional<mapping> own_;
  std::unique_ptr<far_region> far_;
};

}  // namespace sluice::segment
