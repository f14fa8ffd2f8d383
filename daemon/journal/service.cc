// SPDX-License-Identifier: Apache-2.0
#include "journal/service.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/sync.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace sluice::journal {

namespace {

// As many join one commit of a file system's journal, and one is for checkpoints.
constexpr unsigned pool_threads = 32 + 1;
constexpr std::uint64_t nap_ns = 10'000'000;
constexpr std::uint64_t beat_every_ns = 1'000'000;  // of many areas: each beat is a line of theirs
constexpr std::uint64_t note_every_ns = 1'000'000'000;  // while something is live
constexpr std::uint64_t sweep_every_ns = 30'000'000;    // a part of the files
constexpr std::uint64_t tidy_every_ns = 300'000'000;
constexpr std::uint64_t anew_every_ns = 100'000'000;  // a job may ask for it as it likes
constexpr std::size_t futexes_max = 128;

struct wait_entry {
  std::uint64_t value, address;
  std::uint32_t flags, zero;
};
constexpr std::uint32_t word_of_32_bits = 2;

}  // namespace

service::service(disk& d, superblock const& s, service_rules const& keep)
    : keep_(keep),
      // Nobody waits for room in there: begin_pass() says what is to be synced.
      log_(d, s, surroundings{realtime_ns, steady_count_ns}, keep.log),
      super_(s),
      incarnation_(realtime_ns()),
      began_ns_(steady_count_ns()),
      head_(s.head),
      checkpoint_ns_(steady_count_ns()),
      rests_after_ns_(keep.rests_after_ns),
      home_writer_(
          [this](std::uint64_t took_ns) {
            return home_pace::pause_ns(took_ns, log_.in_use(), log_.room(), !commits_.is_idle());
          },
          [this] { return commits_.batch_ns(); }),
      commits_(log_, mail_, looks_),
      pool_(mail_, pool_threads) {}

/// Of an error at home, in whichever thread: should we be killed now, nobody else knows of it.
int service::heard_of(int error) {
  home_error_ = error;
  std::lock_guard const held(areas_mutex_);
  for (auto const& a : areas_) a->refuse(error);
  return error;
}

/// Of a file that has records in the journal, in a thread that may wait. The kernel tells such an
/// error once, and shows the pages as clean from then on: only the journal still has them.
int service::lost_at_home(int error) {
  heard_of(error);
  log_.home_failed(error);
  return error;
}

/// The journal failed, and perhaps nobody can read it any more: what it has is made safe at home.
void service::leave_log() {
  if (std::exchange(is_log_left_, true)) return;
  pool_.run([this, all = all_mounts()] { return sync_mounts(all); }, [](int) {});
}

bool service::wants_anew() const {
  if (now_ns_ - began_ns_ < anew_every_ns) return false;
  return failed() == 0 &&
         std::any_of(areas_.begin(), areas_.end(), [](auto const& a) { return a->is_voided(); });
}

/// Nothing that was begun is unfinished. In this order: what waited in one place a moment ago is in
/// the next by now.
bool service::is_quiet() const {
  return pool_.under_way() == 0 && commits_.is_idle() && mail_.is_empty() && parked_.empty() &&
         sync_all_.empty() && closing_.empty();
}

void service::add(std::unique_ptr<area> a) {
  now_ns_ = steady_count_ns();
  std::vector<request> left;
  a->beat(now_ns_);
  a->open_for(super_, incarnation_, log_place_);
  for (auto const& [device, m] : mounts_) a->tell_device(device);
  // What its programs wrote of those before, they perhaps did not note.
  for (auto const& [key, f] : files_)
    a->raise_surely(a->key_of(key.first, key.second), abi::order_watched | abi::order_whole);
  // For the daemon before us.
  if (a->is_resting() && !is_resting_) a->noted_nothing_until(realtime_ns());
  a->rest(is_resting_);
  a->take_posted(left, true);
  told_.add(*a);
  std::unique_lock held(areas_mutex_);
  areas_.push_back(std::move(a));
  ++areas_are_;
  held.unlock();
  for (auto const& r : left) take_over(r);
}

void service::remove(std::string const& path) {
  for (auto at = areas_.begin(); at != areas_.end(); ++at)
    if ((*at)->path() == path) {
      // What its programs synced alone and marked stays so until it is healed, without their flags.
      auto const is_native = [&](held_inode const& i) {
        std::uint64_t const here = (*at)->key_of(i.key.first, i.key.second);
        return ((*at)->flags(here) & abi::order_native) != 0;
      };
      for (auto const& [key, f] : files_) f->is_marked |= is_native(*f);
      for (auto const& [key, d] : directories_) d->is_marked |= is_native(*d);
      told_.remove(**at);
      notices_.drop(**at);
      std::lock_guard const held(areas_mutex_);
      retired_.push_back(std::move(*at));
      areas_.erase(at);
      ++areas_are_;
      return;
    }
}

std::vector<std::string> service::areas() const {
  std::vector<std::string> paths;
  for (auto const& a : areas_) paths.push_back(a->path());
  return paths;
}

void service::take_over(request const& r) {
  ++counts_.asked;
  switch (r.kind) {
    case abi::order_request::fsync:
    case abi::order_request::fdatasync:
    case abi::order_request::drain:
      return on_file(r);
    case abi::order_request::directory:
      return on_directory(r);
    case abi::order_request::sync_all:
      return on_sync_all(r);
    case abi::order_request::notify:
      return notices_.add(r);
  }
  answer(r, abi::go_native);
}

void service::gather() {
  asked_.clear();
  for (auto const& a : areas_) a->take_posted(asked_);
}

void service::wait() {
  wait_entry list[futexes_max];
  std::size_t count = 0;
  auto const listen = [&](std::atomic<std::uint32_t>& word) {
    list[count++] = {word.load(), reinterpret_cast<std::uintptr_t>(&word), word_of_32_bits, 0};
  };
  listen(mail_.bell());
  for (auto const& a : areas_) {
    a->memory().head.dozing.store(1);
    if (count < futexes_max) listen(a->memory().head.doorbell);
  }
  gather();
  // What was posted before the words were read is looked for after it.
  if (asked_.empty() && !mail_.run()) {
    std::uint64_t const until = now_ns_ + nap_ns;
    timespec const limit = {static_cast<time_t>(until / 1'000'000'000),
                            static_cast<long>(until % 1'000'000'000)};
    syscall(SYS_futex_waitv, list, count, 0, &limit, CLOCK_MONOTONIC);
    gather();
  }
  for (auto const& a : areas_) a->memory().head.dozing.store(0);
}

void service::turn() {
  now_ns_ = steady_count_ns();
  if (now_ns_ - beaten_ns_ > beat_every_ns) {
    beaten_ns_ = now_ns_;
    for (auto const& a : areas_) a->beat(now_ns_);
  }
  wait();
  now_ns_ = steady_count_ns();
  for (auto const& r : std::vector<request>(asked_)) take_over(r);
  mail_.run();
  answer_closed();
  notices_.look();
  keep_time();
}

void service::keep_time() {
  if (is_quiet()) retired_.clear();
  if (home_error_ != 0)
    for (auto const& a : areas_) a->refuse(home_error_);
  if (log_.failed() != 0) leave_log();
  if (failed() != 0) free_orphans();
  if (now_ns_ - swept_ns_ > sweep_every_ns) {
    swept_ns_ = now_ns_;
    sweep_some();
  }
  if (now_ns_ - tidied_ns_ > tidy_every_ns) {
    tidied_ns_ = now_ns_;
    tidy_up();
  }
  if (now_ns_ - asked_again_ns_ > own_ns) {
    asked_again_ns_ = now_ns_;
    ask_again();
  }
  if (!anything_live()) return rest();
  // Recovery tells other people's changes from ours by the time of the last record.
  if (now_ns_ - noted_ns_ > note_every_ns) {
    noted_ns_ = now_ns_;
    std::uint64_t lsn = 0;
    if (log_.try_append(record{}, lsn) == 0) commits_.push(lsn);
  }
  bool const is_due =
      now_ns_ - checkpoint_ns_ > keep_.checkpoint_every_ns || log_.wants_checkpoint();
  if (failed() == 0 && !is_checkpointing_ && is_due) want_checkpoint();
}

bool service::end() {
  is_ending_ = true;
  if (failed() != 0) return false;
  if (!is_quiet()) return false;
  if (anything_live() || log_.in_use() != 0) {
    want_checkpoint();
    return false;
  }
  notices_.tell_all();
  for (auto const& a : areas_) a->close_down();
  // Those who asked before they saw it.
  gather();
  for (auto const& r : asked_) answer(r, abi::go_native);
  told_.publish(head_);
  told_ = {};
  std::lock_guard const held(areas_mutex_);
  areas_.clear();
  ++areas_are_;
  return true;
}

}  // namespace sluice::journal
