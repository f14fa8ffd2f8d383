// SPDX-License-Identifier: Apache-2.0
// What people changed by hand at a controller, on disk: overrides and the applied policy. It also
// undoes overrides of jobs that are gone.
// Where its directory is shared with a standby, the controller that rules writes there, the one
// that most nodes obey. The other one only reads, so it has all of it when it takes over. Both read
// once a second, and go by terms (change_files.h): the highest counts, and of two writers with the
// same one the first that was seen. What came late, is damaged or is gone changes nothing, and who
// rules writes again what he has. Who could not write yet in his reign follows what he finds there:
// that may have been acknowledged, and nothing of his was.
// What stays true: the loop never waits for the disk, but at its start and its end. Nobody begins
// to write to a shared directory before he has read it as the one who rules; then he writes at
// once, so that the others know his term. A change is acknowledged by one who rules when it is
// written. Where nobody rules what has an end ends, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/side_thread.h"
#include "cluster/absences.h"
#include "cluster/change_files.h"
#include "cluster/roster.h"
#include "runtime/log.h"
#include "verbs/kept_answers.h"
#include "verbs/views/overrides.h"

namespace sluice::cluster {

class change_keeper {
 public:
  /// Reads what is there. It waits two seconds for a shared directory, and goes on without it. A
  /// file that is of no use is lost, and the log says so.
  change_keeper(change_files files, runtime::logger& log);

  verbs::override_book& book() { return book_; }
  /// As its file has it; none: nobody applied one.
  std::optional<std::string> const& applied() const { return applied_; }
  void set_applied(std::string text);
  /// The file that it was applied over was edited. It goes when we rule, if it is still the same,
  /// and so does an earlier one over that file that would come back.
  void forget_applied();
  /// That file is as it was.
  void keep_applied() { passed_.clear(); }
  /// applied() and book() say what is on disk; before, nobody answered.
  bool has_read() const { return seen_.has_value(); }
  /// What was changed, and who waits until it is written.
  verbs::kept_answers& kept() { return kept_; }
  /// When turn() has something to write.
  std::optional<std::int64_t> due_ns() const;
  /// What is changed here is written. Else it holds as long as nobody rules here, and as the files
  /// stay as they are.
  bool keeps_changes() const { return phase_ != phase::follows && phase_ != phase::takes_over; }
  /// Why nothing may be changed here now; empty: it may.
  std::string why_closed() const;

  /// To be polled; then turn() takes what came of the work.
  int fd() const { return thread_.fd(); }
  bool is_busy() const { return thread_.is_busy(); }
  /// Whether we rule now (lease::parent), and how long a change waits when we do not. A new policy
  /// costs that for a moment: nodes do not lend yet of what they have not heard of. `unix_s`: of
  /// CLOCK_REALTIME, the least term of a reign that begins.
  struct standing {
    std::int64_t now_ns;
    bool is_ruling;
    std::int64_t patience_ns;
    std::int64_t unix_s;
  };
  /// Begins what is due. True: the book or the applied policy is another one now.
  bool turn(standing at);
  /// Waits until all is written, or could not be. `at`: asked again after each wait.
  void finish(std::function<standing()> const& at);
  /// Once a second: what has ended, or was meant for a job that is gone. True: the book has
  /// changed.
  bool take_back(roster const& known, lease::time_ns now, dated_moment today);

 private:
  enum class phase {
    follows,     // another one rules, or nobody
    takes_over,  // we rule, and have not read since
    rules,
    waits,    // we ruled a moment ago: what was changed waits
    returns,  // the same, and we rule again, and have not read since
  };
  enum class work { reads, reads_to_rule, writes };

  bool is_ruling() const { return phase_ != phase::follows && phase_ != phase::waits; }
  std::int64_t highest_term() const { return seen_ ? seen_->term : kept_changes::no_file; }
  bool follow(standing at);
  void begin_read(std::int64_t now_ns);
  void read_first();
  void begin_write(std::int64_t now_ns);
  bool end_work(standing const& at);
  bool end_write(std::int64_t now_ns);
  void settle(std::function<standing()> const& at);
  bool take_in(found_changes found, std::int64_t unix_s);
  bool came_late(kept_changes const& found) const;
  void begin_reign(kept_changes const& found, std::int64_t unix_s);
  bool is_passed(std::optional<std::string> const& applied) const;
  void drop_passed();
  void go_back();
  bool give_up();

  change_files const files_;
  runtime::logger& log_;
  verbs::override_book book_;
  std::optional<std::string> applied_;
  std::vector<std::string> passed_;   // see forget_applied(); none: all is followed, or gone
  std::optional<kept_changes> seen_;  // the newest of the file; none: never read
  verbs::kept_answers kept_;
  absences absent_;

  phase phase_ = phase::follows;
  std::int64_t term_ = 0;                    // of our last reign
  std::string over_;                         // the file's text when that began
  std::int64_t ruled_ns_ = 0;                // last
  std::int64_t read_ns_ = 0, began_ns_ = 0;  // the last reading; the work in hand
  std::string trouble_;

  work work_ = work::reads;
  std::optional<kept_changes> writing_;  // or written last
  // The thread's while it is busy.
  change_files::written written_ = change_files::written::no;
  found_changes found_;
  side_thread thread_;
};

}  // namespace sluice::cluster
