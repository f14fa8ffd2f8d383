// SPDX-License-Identifier: Apache-2.0
#include "cluster/change_keeper.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace sluice::cluster {

namespace {

constexpr std::int64_t read_every_ns = 1'000'000'000, slow_ns = 3'000'000'000;
constexpr int longest_start_ms = 2000;
constexpr char overtaken[] =
    "most nodes do not obey this controller any more: do not count on this change";
constexpr char silent[] = "its server does not answer";

/// policy_keeper::as_applied() begins with the file's hash.
bool is_over_same_file(std::string const& applied, std::string const& other) {
  return applied.substr(0, applied.find('\n')) == other.substr(0, other.find('\n'));
}

}  // namespace

change_keeper::change_keeper(change_files files, runtime::logger& log)
    : files_(std::move(files)), log_(log) {
  if (files_.is_shared()) {
    read_first();
  } else {
    phase_ = phase::takes_over;
    work_ = work::reads_to_rule;
    take_in(files_.read(true), 0);
  }
}

/// So that a controller that starts again has the applied policy from the beginning.
void change_keeper::read_first() {
  begin_read(0);
  pollfd bell = {fd(), POLLIN, 0};
  if (is_busy() && poll(&bell, 1, longest_start_ms) == 1) end_work({});
}

void change_keeper::set_applied(std::string text) {
  std::erase(passed_, text);
  applied_ = std::move(text);
  kept_.changed();
}

void change_keeper::forget_applied() {
  if (!applied_) return;
  auto const pass = [&](std::optional<std::string> const& each) {
    if (each && !is_passed(each) && is_over_same_file(*each, *applied_)) passed_.push_back(*each);
  };
  pass(applied_);
  if (seen_) pass(seen_->applied);
  if (is_busy() && work_ == work::writes) pass(writing_->applied);
  drop_passed();
}

bool change_keeper::is_passed(std::optional<std::string> const& applied) const {
  return applied && std::find(passed_.begin(), passed_.end(), *applied) != passed_.end();
}

/// A standby that follows a file which was edited leaves the one who has the pool alone.
void change_keeper::drop_passed() {
  if (!is_passed(applied_) || !keeps_changes()) return;
  log_.info("the applied policy is over: its file was edited", {{"dir", files_.dir()}});
  applied_.reset();
  kept_.changed_unasked();
}

std::optional<std::int64_t> change_keeper::due_ns() const {
  return phase_ == phase::rules && !is_busy() ? kept_.due_ns() : std::nullopt;
}

std::string change_keeper::why_closed() const {
  if (phase_ != phase::takes_over && phase_ != phase::returns) return {};
  if (!trouble_.empty()) return "what was changed by hand cannot be read: " + trouble_;
  return keeps_changes() ? "" : "this controller has just taken over; try again in a moment";
}

// ---- its file

void change_keeper::begin_read(std::int64_t now_ns) {
  read_ns_ = began_ns_ = now_ns;
  work_ = is_ruling() ? work::reads_to_rule : work::reads;
  thread_.begin([this, is_ours = is_ruling()] { found_ = files_.read(is_ours); });
}

void change_keeper::begin_write(std::int64_t now_ns) {
  kept_.begin();
  began_ns_ = now_ns;
  work_ = work::writes;
  written_ = change_files::written::no;
  writing_ = files_.file_of(book_, applied_, term_);
  auto write = [this, file = *writing_, over = over_] { written_ = files_.write(file, over); };
  if (!thread_.begin(std::move(write))) end_write(now_ns);
}

/// One that ends when we rule no more is not acknowledged: another one may have read before it. If
/// we rule again soon, and nobody else wrote, it is written once more. One that was overtaken waits
/// until we have read what is there. True: see take_in().
bool change_keeper::end_write(std::int64_t now_ns) {
  bool const is_written = written_ == change_files::written::yes;
  if (is_written) seen_ = writing_;
  if (written_ == change_files::written::no)
    log_.error("changes by hand are not saved", {{"dir", files_.dir()}});
  if (phase_ == phase::rules && written_ == change_files::written::overtaken) {
    phase_ = phase::returns;
    read_ns_ = 0;  // at once
  }
  if (phase_ == phase::rules) {
    if (is_written && !is_passed(seen_->applied)) passed_.clear();
    kept_.tried(now_ns, is_written);
    return false;
  }
  kept_.again();
  return !keeps_changes() && give_up();
}

bool change_keeper::end_work(standing const& at) {
  thread_.end();
  if (work_ == work::writes) return end_write(at.now_ns);
  return take_in(std::exchange(found_, {}), at.unix_s);
}

/// Of two writers with the same number the second one is late: the first one may have acknowledged
/// what he wrote, and the second one nothing, because he rules only after he has read.
bool change_keeper::came_late(kept_changes const& found) const {
  if (found.term != highest_term()) return found.term < highest_term();
  return seen_ && found.writer != seen_->writer;
}

/// True: there is something that we did not know.
bool change_keeper::take_in(found_changes found, std::int64_t unix_s) {
  if (found.trouble != trouble_ && !found.trouble.empty())
    log_.error("changes by hand cannot be read", {{"why", found.trouble}});
  trouble_ = std::move(found.trouble);
  if (!trouble_.empty()) return false;
  kept_changes const& kept = found.kept;
  bool const is_same = kept == seen_ || (kept == writing_ && !came_late(kept));
  // A try of this reign that came through after it was given up, before a newer one.
  bool const is_own = writing_ && kept.term == term_ && kept.writer == writing_->writer;
  bool const is_late = came_late(kept) || (phase_ == phase::rules && is_own && !is_same);
  for (auto const& file : found.lost)
    log_.error(is_late ? "changes by hand damaged" : "changes by hand lost",
               {{"why", file.why}, {"kept_as", file.kept_as}});
  if (!is_late) seen_ = kept;
  if (is_same && phase_ == phase::rules) return false;
  // What waits to be written is still the newest. A new ruler begins with what was written.
  bool const stays = (is_late || is_same) && phase_ != phase::takes_over;
  if (!stays) go_back();
  if (work_ != work::reads_to_rule) return !stays;
  if (is_late)
    log_.warning("changes by hand were replaced by older ones, or are gone: all is written again",
                 {{"dir", files_.dir()}, {"term", kept.term}, {"writer", kept.writer}});
  begin_reign(kept, unix_s);
  return !stays;
}

/// Also when another's write came into ours: it may bear the same term. A file that was lost, or
/// restored, tells less than a standby knows: by the clock we come after that, too.
void change_keeper::begin_reign(kept_changes const& found, std::int64_t unix_s) {
  term_ = std::max({term_ + 1, highest_term() + 1, found.term + 1, unix_s});
  term_ = std::min(term_, kept_changes::last_term);  // what is written can be read
  over_ = found.text;
  ruled_ns_ = began_ns_;
  if (std::exchange(phase_, phase::rules) != phase::rules && files_.is_shared())
    log_.info("changes by hand are kept here", {{"dir", files_.dir()}, {"term", term_}});
  if (files_.is_shared()) kept_.changed_unasked();
  drop_passed();
}

/// To what was written; whoever waits is told.
void change_keeper::go_back() {
  if (kept_.due_ns()) kept_.give_up(overtaken);
  book_ = change_files::book_of(*seen_);
  applied_ = seen_->applied;
  if (!is_passed(applied_)) passed_.clear();
}

/// What was changed and not written is taken back. True: the book is another one now.
bool change_keeper::give_up() {
  if (!kept_.due_ns()) return false;
  go_back();
  return true;
}

/// True: see give_up().
bool change_keeper::follow(standing at) {
  if (phase_ == phase::rules && at.is_ruling) ruled_ns_ = at.now_ns;
  if (at.is_ruling && !is_ruling()) {
    phase_ = phase_ == phase::waits ? phase::returns : phase::takes_over;
    read_ns_ = 0;  // at once
  } else if (!at.is_ruling && is_ruling()) {
    phase_ = keeps_changes() ? phase::waits : phase::follows;
    if (work_ == work::reads_to_rule) work_ = work::reads;
  }
  if (!keeps_changes() || at.now_ns - ruled_ns_ <= at.patience_ns) return false;
  phase_ = at.is_ruling ? phase::takes_over : phase::follows;
  return give_up();
}

bool change_keeper::turn(standing at) {
  bool is_news = follow(at);
  if (thread_.is_over()) is_news |= end_work(at);
  if (thread_.is_busy()) {
    if (at.now_ns - began_ns_ > slow_ns) trouble_ = silent;
    return is_news;
  }
  auto const due = due_ns();
  if (due && at.now_ns >= *due) begin_write(at.now_ns);
  bool const is_time = files_.is_shared() && at.now_ns - read_ns_ >= read_every_ns;
  if (is_time && !thread_.is_busy()) begin_read(at.now_ns);
  return is_news;
}

/// The work in hand. What a reading finds is of no use at an end.
void change_keeper::settle(std::function<standing()> const& at) {
  if (!thread_.is_busy()) return;
  thread_.end();
  standing const now = at();
  follow(now);
  if (work_ == work::writes) end_write(now.now_ns);
}

void change_keeper::finish(std::function<standing()> const& at) {
  settle(at);
  standing const now = at();
  follow(now);
  if (phase_ == phase::rules && kept_.due_ns()) begin_write(now.now_ns);
  settle(at);
  kept_.give_up(overtaken);  // whoever waits still
}

// ---- jobs that are gone

/// Where we do not rule that changes nothing in the files: our clock may be wrong, and we do not
/// hear of all jobs.
bool change_keeper::take_back(roster const& known, lease::time_ns now, dated_moment today) {
  bool const rules = phase_ == phase::rules;
  bool const is_clock_set = rules && book_.follow_clock(today);
  std::vector<std::string> ended = book_.expire(today);
  if (rules) {
    auto const is_over = [&](core::job_id job, verbs::job_overrides const&) {
      return absent_.is_over(job, known.presence_of(job), now);
    };
    for (auto& line : book_.forget_if(is_over)) ended.push_back(std::move(line));
    absent_.keep_if([&](core::job_id job) { return book_.find(job) != nullptr; });
  } else {
    absent_ = {};
  }
  for (auto const& line : ended) log_.info("override ended", {{"what", line}});
  bool const is_changed = is_clock_set || !ended.empty();
  if (is_changed && keeps_changes()) kept_.changed_unasked();
  return is_changed;
}

}  // namespace sluice::cluster
