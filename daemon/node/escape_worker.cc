// SPDX-License-Identifier: Apache-2.0
#include "node/escape_worker.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::node {

/// Shared with the thread, which may outlive us.
struct escape_worker::task {
  watch_list list;
  walk_progress progress;
  watch_report report;
  std::atomic<bool> is_done = false;

  process_mark at() const { return {progress.pid, progress.start_ticks}; }
};

escape_worker::escape_worker(std::shared_ptr<proc const> from, starter start, runtime::logger& log,
                             owner_lookup owner_of)
    : from_(std::move(from)), start_(std::move(start)), log_(log), owner_of_(std::move(owner_of)) {}

void escape_worker::forget_finished() {
  std::erase_if(stuck_, [](auto const& t) { return t->is_done.load(std::memory_order_acquire); });
}

void escape_worker::begin(watch_list list, std::int64_t now_ns) {
  forget_finished();
  if (current_ != nullptr || stuck_.size() >= most_stuck) return;
  list.known_spaces = known_spaces_;
  list.moved = moved_;
  list.avoided.owner_of = owner_of_;
  std::map<uid_t, std::size_t> stuck_of;
  for (auto const& t : stuck_) {
    list.avoided.marks.insert(t->at());
    uid_t const owner = owner_by(owner_of_, t->progress.uid);
    if (++stuck_of[owner] >= most_stuck_of) list.avoided.owners.insert(owner);
  }
  auto next = std::make_shared<task>();
  next->list = std::move(list);
  bool const has_begun = start_([next, from = from_] {
    next->report = walk(*from, next->list, next->progress);
    next->is_done.store(true, std::memory_order_release);
  });
  if (!has_begun) return;
  current_ = std::move(next);
  seen_steps_ = 0;
  moved_ns_ = now_ns;
}

std::optional<watch_report> escape_worker::take(std::int64_t now_ns) {
  if (current_ == nullptr) return std::nullopt;
  if (current_->is_done.load(std::memory_order_acquire)) {
    auto const done = std::exchange(current_, nullptr);
    known_spaces_ = done->report.known_spaces;
    moved_ = std::move(done->report.moved);
    return std::move(done->report);
  }
  std::uint64_t const steps = current_->progress.steps.load(std::memory_order_relaxed);
  if (steps != seen_steps_) {
    seen_steps_ = steps;
    moved_ns_ = now_ns;
  }
  if (now_ns - moved_ns_ >= patience_ns) give_up();
  return std::nullopt;
}

void escape_worker::give_up() {
  stuck_.push_back(std::exchange(current_, nullptr));
  auto const& progress = stuck_.back()->progress;
  log_.warning("a process cannot be looked at: its memory or files do not answer",
               {{"pid", progress.pid.load()}, {"uid", progress.uid.load()}});
  if (stuck_.size() == most_stuck)
    log_.error("escaped processes are no longer looked for: too many do not answer",
               {{"meaning", "end the processes named above"}});
}

}  // namespace sluice::node
