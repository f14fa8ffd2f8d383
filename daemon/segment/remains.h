// SPDX-License-Identifier: Apache-2.0
// What is left of other users' jobs that are over. A user may have its files open still, and let
// them grow where no name leads to them: RUN's memory would fill up, and nobody could say whose it
// is. So the files keep a name, out of the sight of programs, until nobody can write them any more.
// What stays true: such files become ours by their names, which no lease keeps us from, and from
// then on their user gets no lease. Until then `held_areas` hold them. They are cut back to the
// sizes they were made with. How many jobs of a user have left some is known, after a restart too;
// no process of his can open them anew. One look is at `most_of_a_look` of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "segment/cut_back.h"
#include "segment/held_areas.h"

namespace sluice::segment {

class remains {
 public:
  static constexpr std::size_t most_of_a_look = 128;

  explicit remains(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  /// Those that an earlier daemon left.
  void find(std::int64_t now_ns);

  /// Takes the folder of a job of `uid` out of sight. It goes now, or when look() finds that nobody
  /// holds its files. `held`: of its files, until they are ours.
  void retire(std::string const& folder, uid_t uid, held_areas held, std::int64_t now_ns);

  /// The next ones: what their users let grow is cut back, and those that can go are removed.
  /// True: something had grown.
  bool look(std::int64_t now_ns);

  using which_uids = std::function<bool(uid_t)>;
  /// Retired jobs of those users that are left.
  std::size_t of(which_uids const& are_his) const;
  /// One of them has grown, and a lease keeps us from cutting it back.
  bool are_leased(which_uids const& are_his) const;

 private:
  struct row {
    uid_t uid = 0;
    made_sizes sizes;
    std::int64_t since_ns = 0;
    held_areas held = {};
    bool is_leased = false;
    bool had_grown = false;
  };
  static bool clear_away(std::string const& dir, row& r, std::int64_t now_ns);

  std::string run_dir_;
  std::map<std::string, row> rows_;  // by path
  std::string looked_at_;            // the last one
};

}  // namespace sluice::segment
