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

/// What children say of a job: nobody has it, none but who is silent now, or a live one.
enum class presence : std::uint8_t { gone, awaited, here };

class absences {
 public:
  static constexpr lease::time_ns gone_most_ns = 120'000'000'000;
  static constexpr lease::time_ns unseen_most_ns = 86'400'000'000'000;

  /// To be asked of each such job once a second. True: it is gone for minutes by the word of all
  /// who had it, or was not heard of for a day; it is forgotten here then.
  bool is_over(core::job_id job, presence where, lease::time_ns now) {
    absence& a = of_[job];
    if (where == presence::here) {
      a = {.was_here = true};
      return false;
    }
    // A restart forgets who had it.
    a.was_here |= where == presence::awaited;
    bool const is_gone = a.was_here && where == presence::gone;
    if (a.unseen_since == 0) a.unseen_since = now;
    if (!is_gone) a.gone_since = 0;
    if (is_gone && a.gone_since == 0) a.gone_since = now;
    bool const is_over = (a.gone_since != 0 && now - a.gone_since >= gone_most_ns) ||
                         now - a.unseen_since >= unseen_most_ns;
    if (is_over) of_.erase(job);
    return is_over;
  }
  /// Of those for which it is false nothing is left: they are asked of no more.
  void keep_if(std::function<bool(core::job_id job)> const& is_asked) {
    std::erase_if(of_, [&](auto const& one) { return !is_asked(one.first); });
  }

 private:
  struct absence {
    bool was_here = false;
    lease::time_ns gone_since = 0, unseen_since = 0;
  };
  std::map<core::job_id, absence> of_;
};

}  // namespace sluice::cluster
