// SPDX-License-Identifier: Apache-2.0
#include "order/service.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "policy/sync.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace sluice::order {

namespace {

constexpr unsigned crew_threads = 32;  // as many join one commit of a file system's journal
constexpr std::uint64_t nap_ns = 10'000'000;
constexpr std::uint64_t note_every_ns = 1'000'000'000;  // while something is live
constexpr std::uint64_t sweep_every_ns = 30'000'000;    // a part of the files
constexpr std::uint64_t tidy_every_ns = 300'000'000;
constexpr std::uint64_t weigh_every_ns = 1'000'000;           // what it reads all programs write
constexpr std::uint64_t checkpoint_every_ns = 5'000'000'000;  // while something is live
constexpr std::uint64_t soon_ns = 5'000'000;                  // while it is to run empty
constexpr std::uint64_t anew_every_ns = 100'000'000;          // a job may ask for it as it likes
constexpr std::size_t futexes_max = 128;
constexpr std::uint64_t pages_left = 256;  // few enough to be synced at once
constexpr unsigned passes_max = 3;

struct wait_entry {
  std::uint64_t value, address;
  std::uint32_t flags, zero;
};
constexpr std::uint32_t word_of_32_bits = 2;

std::uint64_t clock_now(clockid_t which) {
  timespec t = {};
  clock_gettime(which, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_ns() { return clock_now(CLOCK_MONOTONIC); }
std::uint64_t realtime_ns() { return clock_now(CLOCK_REALTIME); }
std::uint64_t thread_ns() { return clock_now(CLOCK_THREAD_CPUTIME_ID); }

service::service(disk& d, superblock const& s, service_rules const& keep)
    : keep_(keep),
      log_(d, s, surroundings{[this] { return sync_mounts(); }, realtime_ns, monotonic_ns},
           keep.log),
      super_(s),
      incarnation_(realtime_ns()),
      began_ns_(monotonic_ns()),
      head_(s.head),
      checkpoint_ns_(monotonic_ns()),
      worth_(keep.weighing),
      home_writer_(
          [this](std::uint64_t took_ns) {
            return home_pace::pause_ns(took_ns, log_.in_use(), log_.room(), !commits_.is_idle());
          },
          [this] { return commits_.batch_ns(); }),
      crew_(mail_, crew_threads),
      commits_(log_, mail_),
      growth_(d, log_, [this] { return !commits_.is_idle(); }),
      checkpoints_([this] { run_checkpoints(); }) {}

service::~service() {
  {
    std::lock_guard const held(checkpoint_mutex_);
    is_over_ = true;
  }
  checkpoint_due_.notify_all();
  checkpoints_.join();
}

/// The loop adds to them when it holds a file: it must not wait for whoever syncs them. What is
/// added meanwhile has no record of before.
std::vector<int> service::mounts() {
  std::lock_guard const held(mounts_mutex_);
  std::vector<int> all;
  for (auto const& [device, fd] : mounts_) all.push_back(fd.get());
  return all;
}

int service::sync_mounts() {
  for (int const fd : mounts())
    if (int const error = sync_file_system(fd); error != 0) return heard_of(error);
  return home_error_;
}

/// What makes all records that are durable now superfluous. Where others have much that is dirty a
/// sync of all would write that as well.
service::home_sync service::what_to_sync() {
  home_sync what;
  what.up_to = log_.durable();
  std::vector<int> const all = mounts();
  if (unheld_lsn_ > head_ || !std::all_of(all.begin(), all.end(), keeps_names)) return what;
  for (auto const& [key, f] : files_)
    if (is_live(*f) && !f->is_gone) what.files.push_back(f);
  for (auto const& f : orphans_) what.files.push_back(f);
  for (auto const& [key, d] : directories_)
    if (d->last_lsn > head_) what.directories.push_back(d);
  std::size_t const count = what.files.size() + what.directories.size();
  what.is_all = home_pace::is_all_quicker(count, dirty_bytes(), keep_.flush_bytes);
  return what;
}

int service::sync_held(home_sync const& what) {
  if (what.is_all) return sync_mounts();
  std::vector<int> all;
  for (auto const& f : what.files) all.push_back(f->fd.get());
  for (auto const& d : what.directories) all.push_back(d->fd.get());
  int error = sync_each(all);
  for (int const fd : mounts())
    if (error == 0) error = why_not_kept(fd);
  return error == 0 ? home_error_.load() : heard_of(error);
}

/// Of an error at home, in whichever thread: should we be killed now, nobody else knows of it.
int service::heard_of(int error) {
  home_error_ = error;
  std::lock_guard const held(areas_mutex_);
  for (auto const& a : areas_) a->refuse(error);
  return error;
}

/// Of a file that has records in the log, in a thread that may wait. The kernel tells such an error
/// once, and shows the pages as clean from then on: only the log still has them.
int service::lost_at_home(int error) {
  heard_of(error);
  log_.home_failed(error);
  return error;
}

/// The log failed, and perhaps nobody can read it any more: what it has is made safe at home.
void service::leave_log() {
  if (std::exchange(is_log_left_, true)) return;
  crew_.run([this] { return sync_mounts(); }, [](int) {});
}

bool service::wants_anew() const {
  if (now_ns_ - began_ns_ < anew_every_ns) return false;
  return failed() == 0 &&
         std::any_of(areas_.begin(), areas_.end(), [](auto const& a) { return a->is_voided(); });
}

/// Nothing that was begun is unfinished. In this order: what waited in one place a moment ago is in
/// the next by now.
bool service::is_quiet() const {
  return crew_.under_way() == 0 && commits_.is_idle() && mail_.is_empty() && parked_.empty() &&
         sync_all_.empty();
}

void service::run_checkpoints() {
  std::unique_lock held(checkpoint_mutex_);
  for (;;) {
    checkpoint_due_.wait(held, [&] { return is_over_ || step_ != step::none; });
    if (is_over_) return;
    step const now = std::exchange(step_, step::none);
    held.unlock();
    // The list is the loop's again behind the post.
    if (now == step::write) {
      home_writer_.write(leaving_);
      mail_.post([this] { passed(); });
    } else {
      // Its last descriptors of removed files are closed here, which takes time.
      home_sync const what = std::exchange(to_sync_, {});
      int const error = log_.checkpoint(what.up_to, [&] { return sync_held(what); });
      mail_.post([this, error] { checkpointed(error); });
    }
    held.lock();
  }
}

void service::want_checkpoint() {
  if (is_checkpointing_.exchange(true)) {
    wants_another_ = true;
    return;
  }
  checkpoint_ns_ = now_ns_;
  passes_ = 0;
  let_leave(0);
  std::uint64_t pages = 0;
  for (auto const& one : leaving_) pages += one.pages.pages();
  begin_pass(pages <= pages_left);
}

void service::want_tidying(std::uint64_t ranges_min) {
  is_checkpointing_ = is_tidying_ = true;
  passes_ = 0;
  let_leave(ranges_min);
  begin_pass(false);
}

/// The pages of all files that have them in so many ranges, to be written.
void service::let_leave(std::uint64_t ranges_min) {
  for (auto const& [key, f] : files_) {
    if (f->is_leaving || f->explained.empty() || f->explained.all().size() < ranges_min) continue;
    f->is_leaving = true;
    f->leaving = std::exchange(f->explained, {});
    leaving_.push_back({f, f->leaving});
  }
}

/// If `are_clean`, then but for those that were written since.
void service::have_left(bool are_clean) {
  for (auto const& [f, pages] : std::exchange(leaving_, {})) {
    if (!are_clean) f->explained.add(pages);
    f->leaving.clear();
    f->is_leaving = false;
  }
}

/// Who waits for the checkpoint waits for no pauses.
void service::begin_pass(bool is_last) {
  bool const is_waited_for = is_ending_ || !sync_all_.empty();
  is_syncing_ = is_last || is_waited_for || passes_ == passes_max;
  {
    std::lock_guard const held(checkpoint_mutex_);
    step_ = is_syncing_ ? step::sync : step::write;
    if (is_syncing_) to_sync_ = what_to_sync();
  }
  checkpoint_due_.notify_all();
}

/// What was written meanwhile is written as well, until it is little.
void service::passed() {
  have_left(true);
  if (is_tidying_) {
    is_tidying_ = is_checkpointing_ = false;
    if (std::exchange(wants_another_, false)) want_checkpoint();
    return;
  }
  ++passes_;
  let_leave(0);
  std::uint64_t pages = 0;
  for (auto const& one : leaving_) pages += one.pages.pages();
  begin_pass(pages <= pages_left);
}

void service::checkpointed(int error) {
  is_checkpointing_ = is_tidying_ = is_syncing_ = false;
  ++counts_.checkpoints;
  // Where nothing was to be freed nothing was synced.
  have_left(error == 0 && log_.head() != head_);
  if (error == 0) {
    head_ = log_.head();
    told_.checkpointed(head_);
    for (auto& [key, f] : files_) {
      if (f->last_lsn == 0 || is_live(*f)) continue;
      f->last_lsn = 0;
      f->explained.clear();
      forget_name(*f);
      told_.left();
      for (auto const& p : places_of(key)) {
        told_.left(*p.in, p.in->flags(p.key));
        p.in->clear_logged(p.key);
      }
    }
    auto const freed = std::partition(orphans_.begin(), orphans_.end(),
                                      [this](auto const& f) { return is_live(*f); });
    let_go({freed, orphans_.end()});
    orphans_.erase(freed, orphans_.end());
    for (auto& [key, d] : directories_) {
      if (d->last_lsn == 0 || d->last_lsn > head_) continue;
      d->last_lsn = 0;
      for (auto const& p : places_of(key)) p.in->clear_logged(p.key);
    }
  }
  // Of what failed at home sync_home tells; when the log failed, programs go alone.
  // Whoever asked while it ran may have come too late for it.
  std::vector<request> const waited = std::exchange(sync_all_, {});
  if (wants_another_ && error == 0) {
    sync_all_ = waited;
    wants_another_ = false;
    want_checkpoint();
  } else {
    for (auto const& r : waited) answer(r, error);
  }
  auto calls = std::exchange(parked_, {});
  for (auto& call : calls) call();
}

void service::add(std::unique_ptr<area> a) {
  now_ns_ = monotonic_ns();
  std::vector<request> left;
  a->beat(now_ns_);
  a->open_for(super_, incarnation_, log_place_);
  for (auto const& [device, fd] : mounts_) a->tell_device(device);
  // What its programs wrote of those before, they perhaps did not note.
  for (auto const& [key, f] : files_)
    a->raise_surely(a->key_of(key.first, key.second), abi::order_watched | abi::order_whole);
  // Its programs perhaps noted no names for the daemon before us.
  if (a->is_resting() && !is_resting_) woken_ns_ = realtime_ns();
  a->rest(is_resting_, is_aside_);
  a->take_posted(left, true);
  told_.add(*a);
  std::unique_lock held(areas_mutex_);
  areas_.push_back(std::move(a));
  held.unlock();
  for (auto const& r : left) take_over(r);
}

void service::remove(std::string const& path) {
  for (auto at = areas_.begin(); at != areas_.end(); ++at)
    if ((*at)->path() == path) {
      // What its programs synced alone and marked stays so until it is healed, without their flags.
      auto const is_native = [&](file_key const& key) {
        std::uint64_t const here = (*at)->key_of(key.first, key.second);
        return ((*at)->flags(here) & abi::order_native) != 0;
      };
      for (auto const& [key, f] : files_) f->is_marked |= is_native(key);
      for (auto const& [key, d] : directories_) d->is_marked |= is_native(key);
      (*at)->rest((*at)->is_resting(), false);
      told_.remove(**at);
      notices_.drop(**at);
      std::lock_guard const held(areas_mutex_);
      retired_.push_back(std::move(*at));
      areas_.erase(at);
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
  // What was posted before the words were read is looked for behind it.
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
  now_ns_ = monotonic_ns();
  for (auto const& a : areas_) a->beat(now_ns_);
  wait();
  now_ns_ = monotonic_ns();
  for (auto const& r : std::vector<request>(asked_)) take_over(r);
  mail_.run();
  notices_.look();
  keep_time();
}

void service::keep_time() {
  if (is_quiet()) retired_.clear();
  if (home_error_ != 0)
    for (auto const& a : areas_) a->refuse(home_error_);
  if (log_.failed() != 0) leave_log();
  if (now_ns_ - swept_ns_ > sweep_every_ns) {
    swept_ns_ = now_ns_;
    sweep_some();
  }
  if (now_ns_ - tidied_ns_ > tidy_every_ns) {
    tidied_ns_ = now_ns_;
    tidy_up();
  }
  if (now_ns_ - weighed_ns_ > weigh_every_ns) {
    weighed_ns_ = now_ns_;
    weigh();
  }
  if (now_ns_ - asked_again_ns_ > lone_costs::lasts_ns) {
    asked_again_ns_ = now_ns_;
    ask_again();
  }
  if (!anything_live()) return rest();
  // Recovery tells other people's changes from ours by the time of the last record.
  if (now_ns_ - noted_ns_ > note_every_ns) {
    noted_ns_ = now_ns_;
    std::uint64_t lsn = 0;
    if (log_.try_append(record{}, lsn) == 0) commits_.push({lsn, {}, {}, {}});
  }
  bool const is_third_full = log_.wants_checkpoint();
  if (is_third_full && failed() == 0) growth_.want();
  std::uint64_t const every_ns = is_aside_ ? soon_ns : checkpoint_every_ns;
  bool const is_due = now_ns_ - checkpoint_ns_ > every_ns || is_third_full;
  if (failed() == 0 && !is_checkpointing_ && is_due) want_checkpoint();
}

/// Where programs sync more without the log it runs empty, and they go without us for a while. They
/// are told when it is empty, and nothing is held: a directory bears no flag in the areas of those
/// who have nothing in it, so until then each sync of one is ours, that what was removed stays so.
void service::weigh() {
  std::uint64_t syncs = 0;
  bool has_barriers = false;  // they are the log's
  for (auto const& a : areas_) {
    syncs += a->syncs();
    has_barriers |= a->memory().head.ordered_targets != 0;
  }
  worth_.look(now_ns_, syncs, !worth_.wants_aside() || is_resting_);
  bool const is = worth_.wants_aside() && !has_barriers && !is_ending_ && failed() == 0;
  if (std::exchange(is_aside_, is) != is) tell_whether_resting();
}

bool service::end() {
  is_ending_ = true;
  if (failed() != 0) return false;
  if (!is_quiet() || is_checkpointing_) return false;
  if (anything_live() || log_.in_use() != 0) {
    want_checkpoint();
    return false;
  }
  notices_.tell_all();
  for (auto const& a : areas_) a->close_down();
  // Those who asked before they saw it.
  gather();
  for (auto const& r : asked_) answer(r, abi::go_native);
  told_.publish();
  told_ = {};
  std::lock_guard const held(areas_mutex_);
  areas_.clear();
  return true;
}

}  // namespace sluice::order
