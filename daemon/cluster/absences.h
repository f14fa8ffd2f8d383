// SPDX-License-Identifier: Apache-2.0
// Decides when overrides of a job are undone, because the next job of its name is another one.
// Pure.
// What stays true: a controller that restarts, or cannot hear a node, undoes nothing too soon.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "core/job_id.h"
#include "lease/message.h"

namespace sluice::cluster {

class absences {
 public:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  static constexpr lease::time_ns gone_most_ns = 120'000'000'000;
  static constexpr lease::time_ns unseen_most_ns = 86'400'000'000'000;

  /// To be asked of each such job once a second. `is_known`: somebody has it. `child`: a live one
  /// that has it, or nobody. True: it is gone for minutes by the word of who had it, or was not
  /// heard of for a day; it is forgotten here then.
  bool is_over(core::job_id job, bool is_known, std::uint32_t child,
               std::function<bool(std::uint32_t child)> const& is_live, lease::time_ns now) {
    absence& a = of_[job];
    if (is_known) {
      if (!is_live(a.child)) a.child = child;
      a.gone_since = a.unseen_since = 0;
      return false;
    }
    // Who had it last would know; a restart forgets who that was.
    bool const is_gone = is_live(a.child);
    if (a.unseen_since == 0) a.unseen_since = now;
    if (!is_gone) a.gone_since = 0;
    if (is_gone && a.gone_since == 0) a.gone_since = now;
    bool const is_over = (a.gone_since != 0 && now - a.gone_since >= gone_most_ns) ||
                         now - a.unseen_since >= unseen_most_ns;
    if (is_over) of_.erase(job);
    return is_over;
  }

 private:
  struct absence {
    std::uint32_t child = nobody;  // who had the job last
    lease::time_ns gone_since = 0, unseen_since = 0;
  };
  std::map<core::job_id, absence> of_;
};

}  // namespace sluice::cluster
