// SPDX-License-Identifier: Apache-2.0
#include "cluster/change_keeper.h"

#include <poll.h>

#include <utility>

#include "base/boot_id.h"

namespace sluice::cluster {

namespace {

constexpr std::int64_t read_every_ns = 1'000'000'000, slow_ns = 3'000'000'000;
constexpr int longest_start_ms = 2000;
constexpr char overtaken[] =
    "most nodes do not obey this controller any more: do not count on this change";
constexpr char silent[] = "its server does not answer";

}  // namespace

change_keeper::change_keeper(change_files files, runtime::logger& log)
    : files_(std::move(files)), log_(log) {
  if (files_.is_shared())
    read_first();
  else
    take_in(files_.read(true));
}

/// So that a controller that starts again has the applied policy from the beginning.
void change_keeper::read_first() {
  begin_read(0);
  pollfd bell = {fd(), POLLIN, 0};
  if (is_busy() && poll(&bell, 1, longest_start_ms) == 1) end_work(0);
}

void change_keeper::set_applied(std::string text) {
  applied_ = std::move(text);
  is_applied_new_ = true;
  kept_.changed();
}

/// A standby that follows a file which was edited leaves the one who has the pool alone.
void change_keeper::forget_applied() {
  if (!applied_ || !keeps_changes()) return;
  applied_.reset();
  is_applied_new_ = true;
  kept_.changed_unasked();
}

std::optional<std::int64_t> change_keeper::due_ns() const {
  return is_ours() && !is_busy() ? kept_.due_ns() : std::nullopt;
}

std::string change_keeper::why_closed() const {
  if (is_ours() || !is_ruling_) return {};
  if (!trouble_.empty()) return "what was changed by hand cannot be read: " + trouble_;
  return is_known_ ? "" : "this controller has just taken over; try again in a moment";
}

// ---- its files

void change_keeper::begin_read(std::int64_t now_ns) {
  read_ns_ = began_ns_ = now_ns;
  is_reading_ = true;
  reads_as_ours_ = is_ruling_;
  thread_.begin([this, is_ours = is_ruling_] { found_ = files_.read(is_ours); });
}

void change_keeper::begin_write(std::int64_t now_ns) {
  kept_.begin();
  began_ns_ = now_ns;
  is_reading_ = false;
  is_written_ = false;
  writing_ = {book_.to_text(boot_id()), applied_};
  auto const write = [this, texts = writing_, with_applied = is_applied_new_] {
    is_written_ = files_.write(texts, with_applied);
  };
  is_applied_new_ = false;
  if (!thread_.begin(write)) end_write(now_ns);
}

/// One that ends when we rule no more is not acknowledged: another one may have read before it. If
/// we rule again soon, and nobody else wrote, it is written once more. True: see take_in().
bool change_keeper::end_write(std::int64_t now_ns) {
  if (is_written_ && !is_ours()) {
    seen_ = std::move(writing_);
    kept_.again();
    return !is_known_ && give_up();
  }
  if (is_written_) {
    seen_ = std::move(writing_);
  } else {
    seen_.reset();  // a part of it may be there
    is_applied_new_ = true;
    log_.error("changes by hand are not saved", {{"dir", files_.dir()}});
  }
  kept_.tried(now_ns, is_written_);
  return false;
}

bool change_keeper::end_work(std::int64_t now_ns) {
  thread_.end();
  return is_reading_ ? take_in(std::exchange(found_, {})) : end_write(now_ns);
}

/// True: there is something that we did not know.
bool change_keeper::take_in(found_changes found) {
  if (found.trouble != trouble_ && !found.trouble.empty())
    log_.error("changes by hand cannot be read", {{"why", found.trouble}});
  trouble_ = std::move(found.trouble);
  if (!trouble_.empty()) return false;
  for (auto const& file : found.lost)
    log_.error("changes by hand lost", {{"why", file.why}, {"kept_as", file.kept_as}});
  bool const is_same = seen_ == found.texts, has_seen = seen_.has_value();
  if (std::exchange(is_fresh_, reads_as_ours_)) {  // ours is the newest
    if (has_seen && !is_same) return write_again();
    seen_ = std::move(found.texts);
    return false;
  }
  if (is_fresh_) log_.info("changes by hand are kept here", {{"dir", files_.dir()}});
  // What waits to be written is still the newest. A new ruler begins with what is written.
  bool const stays = is_same && (is_known_ || !is_fresh_);
  is_known_ |= is_fresh_;
  if (stays) return false;
  give_up();
  book_ = std::move(found.book);
  applied_ = found.texts.applied;
  seen_ = std::move(found.texts);
  return true;
}

/// Another one ruled no more, and its write hung until now. False: there is nothing to learn.
bool change_keeper::write_again() {
  log_.warning("another controller wrote late: all is written again", {{"dir", files_.dir()}});
  is_applied_new_ = true;
  kept_.changed_unasked();
  return false;
}

/// What was changed and not written is taken back. True: the book is another one now.
bool change_keeper::give_up() {
  if (!kept_.due_ns()) return false;
  kept_.give_up(overtaken);
  is_applied_new_ = false;
  if (!seen_) return false;  // the next reading brings it
  book_ = change_files::book_of(*seen_);
  applied_ = seen_->applied;
  return true;
}

/// True: see give_up().
bool change_keeper::follow(standing at) {
  if (at.is_ruling && !is_ruling_) read_ns_ = 0;  // at once
  is_ruling_ = at.is_ruling;
  if (!is_ruling_) is_fresh_ = reads_as_ours_ = false;
  if (is_fresh_) fresh_ns_ = at.now_ns;
  if (!files_.is_shared() || at.now_ns - fresh_ns_ <= at.patience_ns) return false;
  is_known_ = false;
  return give_up();
}

bool change_keeper::turn(standing at) {
  bool is_news = follow(at);
  if (thread_.is_over()) is_news |= end_work(at.now_ns);
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
  if (!is_reading_) end_write(now.now_ns);
}

void change_keeper::finish(std::function<standing()> const& at) {
  settle(at);
  standing const now = at();
  follow(now);
  if (is_ours() && kept_.due_ns()) begin_write(now.now_ns);
  settle(at);
  kept_.give_up(overtaken);  // whoever waits still
}

// ---- jobs that are gone

/// Where we do not rule that changes nothing in the files: our clock may be wrong, and we do not
/// hear of all jobs.
bool change_keeper::take_back(roster const& known, lease::time_ns now, dated_moment today) {
  bool const is_clock_set = is_ours() && book_.follow_clock(today);
  std::vector<std::string> ended = book_.expire(today);
  if (is_ours()) {
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
