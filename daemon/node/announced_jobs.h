// SPDX-License-Identifier: Apache-2.0
// The jobs of the batch scheduler: takes those that it announces, and releases those that it no
// longer announces. One that finds no room is made when there is some. One that cannot be made for
// another reason, which its user may have given, is tried again ever later. Its note says so.
// What stays true: however many wait, a look is short. Where one of an owner finds no room, his
// others wait with it, and after a number of refusals the rest is for the next look.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/job_table.h"

namespace sluice::node {

class announced_jobs {
 public:
  announced_jobs(job_table& jobs, site_state const& site, runtime::logger& log)
      : jobs_(jobs), site_(site), log_(log) {}

  struct changes {
    std::vector<job*> made, withdrawn;
  };
  /// Looks at all announcements. Who is withdrawn is still to be released.
  changes look(std::int64_t now_ns);
  /// Null: there is no such announcement, or it cannot be (the log says why).
  job* take(std::string const& name, std::int64_t now_ns);
  static constexpr unsigned most_refused = 32;  // in a look
  /// When one is to be tried again; never_ns: that is not a matter of time.
  std::int64_t due_ns() const;
  /// `waits for room: …`, or what else keeps an announced job from being made; empty: nothing.
  std::string why_waiting(std::string const& name) const;

 private:
  struct waiting {
    std::int64_t since_ns = 0;
    std::uint64_t tried_at = 0;  // changes of room, when it was tried last
    std::string why = {};
    std::int64_t pause_ns = 0;  // between tries; 0: it waits for room
    std::int64_t again_ns = 0;  // with a pause
    uid_t owner = 0;
  };

  void tell_cut(bool is_cut);
  void make_due(std::vector<std::string> const& names, std::int64_t now_ns,
                std::vector<job*>& made);
  bool is_passed_over(std::string const& name);
  bool is_due(std::string const& name, std::int64_t now_ns) const;
  std::optional<announcement> read(std::string const& name);
  std::string late_note(std::string const& name, std::int64_t now_ns) const;
  waiting& keep_waiting(std::string const& name, std::string const& why, std::int64_t now_ns);
  void wait_for_room(std::string const& name, uid_t owner, std::string const& why,
                     std::int64_t now_ns);
  void try_later(std::string const& name, std::string const& why, std::int64_t now_ns);

  job_table& jobs_;
  site_state const& site_;
  runtime::logger& log_;
  std::set<std::string> unreadable_;        // announcements that were told of
  std::map<std::string, waiting> waiting_;  // those that could not be made yet
  bool is_cut_ = false;                     // it was told that there are too many
  std::map<uid_t, std::string> full_;       // owners who have found no room in this look, and why
  unsigned refused_ = 0;                    // in this look
  std::string last_;                        // that was tried
  bool has_more_ = false;                   // the look ended before all were tried
};

}  // namespace sluice::node
