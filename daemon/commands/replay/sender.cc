// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/sender.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "core/durations.h"

namespace sluice::replay {

namespace {

constexpr std::int64_t slice_ns = 50'000'000;  // the longest sleep without a look at `stop`
constexpr std::int64_t together_ns = 100'000;  // the shortest sleep: what comes within is sent then
constexpr std::int64_t retry_ns = 200'000;
constexpr std::int64_t far = INT64_MAX;

std::int64_t ns_of(double s) { return s == never_s ? far : std::llround(s * 1e9); }

}  // namespace

sender::sender(plan const& p, unsigned index, shared_counters& book, work_place& place,
               sender_settings const& s)
    : plan_(p),
      me_(p.workers[index]),
      index_(index),
      book_(book),
      page_(book.worker(index)),
      place_(place),
      settings_(s),
      hand_(place, index, s.seed) {
  for (share const& one : me_.shares) {
    stream const& of = plan_.streams[one.stream];
    schedules_.emplace_back(of.wanted, one.of_it,
                            schedule_settings{s.kind, of.phase, mix_seed(s.seed, one.stream)});
  }
  record_ = book_.record(index_, 0);
}

bool sender::prepare() {
  for (share const& one : me_.shares) {
    unsigned const op = plan_.streams[one.stream].op;
    int const failed = hand_.prepare(op);
    if (failed == 0) continue;
    book_.head().error_op.store(op);
    book_.head().error.store(failed);
    return false;
  }
  return true;
}

bool sender::wait_for_start() {
  while ((start_ns_ = book_.head().start_ns.load(std::memory_order_acquire)) == 0) {
    if (book_.head().stop.load(std::memory_order_relaxed)) return false;
    sleep_until(steady_ns() + 1'000'000);
  }
  if (settings_.closed_loop) sleep_until(start_ns_);
  return true;
}

/// The share whose next op comes first.
void sender::pick() {
  double least = never_s;
  for (unsigned i = 0; i < schedules_.size(); ++i)
    if (schedules_[i].next_s() < least) {
      least = schedules_[i].next_s();
      current_ = i;
    }
  next_ns_ = ns_of(least);
  page_.next_op.store(current_, std::memory_order_relaxed);
  page_.next_ns.store(next_ns_, std::memory_order_relaxed);
}

void sender::turn_to(std::int64_t second) {
  std::uint64_t const head = page_.head.load(std::memory_order_relaxed);
  bool const is_empty = std::all_of(record_, record_ + me_.shares.size(), [](tally const& t) {
    return t.submitted == 0 && t.done == 0 && t.failed == 0;
  });
  // Full: the one who reads was held up; what happens now is counted in the last second he has.
  if (!is_empty && head + 1 - page_.tail.load(std::memory_order_acquire) >= ring_records) return;
  if (!is_empty) {
    page_.head.store(head + 1, std::memory_order_release);  // pairs with the reader's load
    record_ = book_.record(index_, head + 1);
    std::memset(record_, 0, me_.shares.size() * sizeof *record_);
  }
  page_.second[page_.head.load(std::memory_order_relaxed) % ring_records] = second;
  second_ = second;
}

tally& sender::slot(std::int64_t at_ns, unsigned share) {
  std::int64_t const second = at_ns < 0 ? -1 : at_ns / second_ns;
  if (second != second_) turn_to(second);
  return record_[share];
}

bool sender::may_send(std::int64_t now_ns) {
  // A thread with several ops would wait for itself.
  unsigned const op = plan_.streams[me_.shares[current_].stream].op;
  if (me_.shares.size() == 1 && !place_.has_what_it_takes(op, now_ns)) return false;
  if (settings_.max_inflight == 0) return true;
  auto& under_way = book_.under_way(me_.job);
  if (under_way.fetch_add(1, std::memory_order_relaxed) < settings_.max_inflight) return true;
  under_way.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Sends the op that is next, at `now_ns` after the start; when it had ended.
std::int64_t sender::send(std::int64_t now_ns) {
  unsigned const share_index = current_;
  unsigned const op = plan_.streams[me_.shares[share_index].stream].op;
  std::int64_t const lag_ns =
      settings_.closed_loop ? 0 : std::max<std::int64_t>(0, now_ns - next_ns_);
  // What was meant for the warm-up is its own, whenever it is sent.
  bool const counts = next_ns_ >= 0;
  tally& begun = slot(counts ? now_ns : -1, share_index);
  ++begun.submitted;
  if (lag_ns > settings_.late_ns) ++begun.delayed;
  begun.lag_ns_max = std::max(begun.lag_ns_max, lag_ns);
  begun.lag_ns_sum += lag_ns;
  schedules_[share_index].advance();
  pick();
  place_.due_ns[op].store(schedules_[share_index].next_s() == never_s
                              ? far
                              : start_ns_ + ns_of(schedules_[share_index].next_s()),
                          std::memory_order_relaxed);
  int const failed = hand_.act(op);
  std::int64_t const end_ns = steady_ns() - start_ns_;
  if (settings_.max_inflight != 0) book_.under_way(me_.job).fetch_sub(1, std::memory_order_relaxed);
  tally& ended = slot(counts ? end_ns : -1, share_index);
  ++(failed == 0 ? ended.done : ended.failed);
  ++ended.took[core::histogram_step(static_cast<std::uint64_t>(end_ns - now_ns))];
  if (failed != 0) page_.last_error[share_index].store(failed, std::memory_order_relaxed);
  page_.sent.store(page_.sent.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  page_.last_ns.store(end_ns, std::memory_order_relaxed);
  return end_ns;
}

void sender::wait(std::int64_t now_ns) {
  page_.helpers.store(hand_.helpers(), std::memory_order_relaxed);
  std::int64_t const until = std::max(next_ns_, now_ns + together_ns);
  sleep_until(start_ns_ + std::min(until, now_ns + slice_ns));
}

void sender::run() {
  bool const is_ready = prepare();
  pick();
  page_.ready.store(true, std::memory_order_release);
  if (is_ready && wait_for_start()) {
    auto& stop = book_.head().stop;
    std::int64_t now_ns = steady_ns() - start_ns_;
    page_.first_ns.store(next_ns_, std::memory_order_relaxed);
    while (next_ns_ != far && now_ns < settings_.end_ns && !stop.load(std::memory_order_relaxed)) {
      bool const due = settings_.closed_loop || next_ns_ <= now_ns;
      if (due && may_send(start_ns_ + now_ns)) {
        now_ns = send(now_ns);
        continue;
      }
      if (due)
        sleep_until(start_ns_ + now_ns + retry_ns);
      else
        wait(now_ns);
      now_ns = steady_ns() - start_ns_;
    }
  }
  page_.helpers.store(hand_.helpers(), std::memory_order_relaxed);
  page_.ended.store(true, std::memory_order_release);
}

}  // namespace sluice::replay
