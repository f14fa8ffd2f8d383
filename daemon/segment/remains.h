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

#include "base/owners.h"
#include "segment/cut_back.h"
#include "segment/held_areas.h"
#include "segment/tidier.h"

namespace sluice::segment {

class remains {
 public:
  static constexpr std::size_t most_of_a_look = 128;

  /// `by` tidies them. `owner_of`: see tidier::ask().
  remains(std::string run_dir, tidier& by, owner_lookup owner_of)
      : run_dir_(std::move(run_dir)), tidier_(by), owner_of_(std::move(owner_of)) {}

  /// Those that an earlier daemon left.
  void find();

  /// Takes the folder of a job of `uid` out of sight. It goes soon, or when look() finds that
  /// nobody holds its files. `held`: of its files, until they are ours.
  void retire(std::string const& folder, uid_t uid, held_areas held, std::int64_t now_ns);

  /// Asks for the next ones: what their users let grow is cut back, and those that can go go.
  void look(std::int64_t now_ns);
  /// What the tidier did. False: it is none of these.
  bool hear(std::string const& dir, tidied const& done, std::int64_t now_ns);

  using which_uids = std::function<bool(uid_t)>;
  /// Retired jobs of those users that are left.
  std::size_t of(which_uids const& are_his) const;
  /// Of these, those that were found open. The others are about to go.
  std::size_t open_of(which_uids const& are_his) const;
  /// A lease or a lock of his keeps us from one of them.
  bool are_held_up(which_uids const& are_his, std::int64_t now_ns) const;

 private:
  struct row {
    uid_t uid = 0;
    made_sizes sizes;
    std::int64_t hidden_ns = 0;  // the area of the journal; 0: it may be in sight
    held_areas held = {};
    bool is_last_step = false;  // all that can be done was asked for
    bool is_open = false;
  };
  void ask(std::string const& dir, row& r, std::int64_t now_ns);

  std::string run_dir_;
  tidier& tidier_;
  owner_lookup owner_of_;
  std::map<std::string, row> rows_;  // by path
  std::string looked_at_;            // the last one
};

}  // namespace sluice::segment
