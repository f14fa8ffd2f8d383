// SPDX-License-Identifier: Apache-2.0
// One user's journal, as its keeper has it: the process that serves it, and what became of that.
// It belongs to the keeper's loop, which polls and calls; nothing here waits.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/stopped_child.h"
#include "node/journal_words.h"
#include "node/user_places.h"
#include "segment/journal_process.h"

namespace sluice::node {

class kept_journal {
 public:
  /// `is_left`: an earlier keeper made its directory, and something may be in it.
  kept_journal(journal_settings const& settings, user_places& places, uid_t user, bool is_left);

  journal_report const& report() const { return report_; }
  bool has_news() const { return has_news_; }
  void told() { has_news_ = false; }

  /// Where words, the first served request and the end come from.
  void add_to(std::vector<pollfd>& all) const;
  /// Takes what has come, and does what is due.
  void look();
  /// When to look without any sign; never_ns: then only.
  std::int64_t due_ns() const;

  /// `group`: of his processes; nobody's, where it is not known.
  void want(gid_t group);
  void leave();
  /// Not to wait for the next try.
  void again();
  /// All home, and not to be started again.
  void stop();
  /// Its process has ended, and nothing is left that the keeper needs to know.
  bool is_over() const { return is_over_; }
  bool has_process() const { return report_.pid != 0; }
  /// Of one that was left, has to come home, or is served by another process still: its next start
  /// is due.
  bool waits_for_turn(std::int64_t now_ns) const;
  /// And has not for so long that it holds up others.
  bool is_recovering(std::int64_t now_ns) const;
  /// Its file takes room that others could have. One that cannot be recovered is a file of its
  /// user's among others, until somebody mends it: it keeps nobody out.
  bool takes_room() const;
  bool waits_for_room() const { return report_.phase == journal_phase::full && is_wanted_; }
  /// `why`: for people, where there is none for it.
  void wait_for_room(std::string const& why);
  void start();

 private:
  void make_place();
  void begin();
  void hear_ready();
  void hear_words();
  void look_for_end();
  void ended(int status);
  void go(bool is_clean);
  void pause();
  void wait_for_other();
  void end_process();
  void tell(journal_phase phase);

  journal_settings const& settings_;
  user_places& places_;
  std::string status_path_;
  std::optional<segment::sentinel_pair> sentinel_;
  segment::journal_process child_;
  descriptor ended_;
  journal_report report_;
  std::string words_;
  bool is_wanted_ = false, is_ending_ = false, is_stopped_ = false;
  bool only_recovers_ = false;  // its process
  stopped_child stops_;         // while it should end
  gid_t group_ = nobody;
  bool is_over_ = false, has_news_ = true;
  std::int64_t begun_ns_ = 0, served_ns_ = 0, pause_ns_ = 0, unwanted_ns_ = 0;
};

}  // namespace sluice::node
