// SPDX-License-Identifier: Apache-2.0
// A child that has a user's rights is that user's to stop, and that again and again. Who waits for
// its end makes it go on some times, and then ends it. Pure.
#pragma once

#include <signal.h>

namespace sluice {

class stopped_child {
 public:
  /// What to send to it now that it was stopped once more.
  int signal_for_it() { return ++wakes_ > most_wakes ? SIGKILL : SIGCONT; }
  bool is_given_up() const { return wakes_ > most_wakes; }

 private:
  static constexpr int most_wakes = 5;
  int wakes_ = 0;
};

}  // namespace sluice
