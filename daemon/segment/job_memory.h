// SPDX-License-Identifier: Apache-2.0
// The segment of a job, as the loop has it: see loop_memory.h.
#pragma once

#include <string>

#include "segment/curve.h"
#include "segment/loop_memory.h"
#include "segment/mapping.h"

namespace sluice::segment {

enum class job_age { older, made_now };

class job_memory : public loop_memory<mapping, abi::segment> {
 public:
  using loop_memory::loop_memory;

  /// Opens the segment of a job of `uid`, one of the users of `owner`. `far`: null, where all are
  /// our own. Throws when there is none, it is not one of ours, or does not come.
  static job_memory open(std::string const& path, uid_t uid, uid_t owner, far_memory* far,
                         job_age age);

  void write_curve(unsigned channel, core::curve_settings const& curve, std::int64_t now_ns) {
    change({.what = touch::curve, .index = channel, .at_ns = now_ns, .curve = curve});
  }
  curve_writer writer() {
    return [this](unsigned channel, core::curve_settings const& curve, std::int64_t now_ns) {
      write_curve(channel, curve, now_ns);
    };
  }
  void set_holder(std::uint64_t word) { change({.what = touch::holder, .word = word}); }
};

}  // namespace sluice::segment
