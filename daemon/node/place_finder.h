// SPDX-License-Identifier: Apache-2.0
// Finds the places of the site's targets for the loop, which never touches a path itself: a file
// system whose server is gone holds up every thread that does. Another thread looks, the loop waits
// for it as long as its patience with that path lasts. Paths of users are not looked at.
// What stays true: no call takes longer than patience::longest_ns; at most `most_stuck` threads
// wait for file systems, one for a path. If nobody answers now, a place that was found before stays
// valid, because roots of targets do not move.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "node/patience.h"
#include "policy/compile.h"

namespace sluice::node {

class place_finder {
 public:
  using look = std::function<policy::place(std::string const& path)>;
  static constexpr unsigned most_stuck = 32;

  explicit place_finder(look find = policy::find_place);
  /// The machine's file systems. `find` throws sluice_error when there is no answer, and what the
  /// look throws.
  policy::file_system files();
  policy::place find(std::string const& path);

 private:
  struct waiting;
  policy::place no_answer(std::string const& path) const;

  look find_;
  patience patience_;
  std::shared_ptr<waiting> waiting_;  // its threads may outlive us
  std::map<std::string, policy::place> known_;
};

}  // namespace sluice::node
