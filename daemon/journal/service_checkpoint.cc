// SPDX-License-Identifier: Apache-2.0
// How the journal gets room: what has records in it is written home in passes, then synced, and
// then the records are freed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <set>
#include <utility>

#include "base/sync.h"
#include "journal/service.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t pages_left = 256;  // few enough to be synced at once
constexpr unsigned passes_max = 3;
constexpr std::size_t orphans_max = 1024;
constexpr blkcnt_t orphan_blocks_max = 4 << 20 >> 9;

}  // namespace

/// False: nothing of it can be synced, so nothing may be logged.
bool service::hold_mount(held_file const& f, struct stat const& st) {
  if (mounts_.contains(f.key.first)) return true;
  auto m = std::make_shared<held_mount>();
  m->fd = open_beside(f.fd.get(), st);
  if (!m->fd) m->fd = descriptor(fcntl(f.fd.get(), F_DUPFD_CLOEXEC, 3));
  m->asked_at = descriptor(open_nameless(m->fd.get()));
  // Its user may write it, which he may not the directory of each.
  if (!m->asked_at) m->asked_at = descriptor(fcntl(f.fd.get(), F_DUPFD_CLOEXEC, 3));
  m->kept_by = fs_journal_of(f.fd.get());
  m->has_fine_times = has_fine_times(f.fd.get(), st);
  m->fs = f.id.fs;
  return m->fd && m->asked_at && mounts_.emplace(f.key.first, m).second;
}

service::mount_ptr service::mount_of(held_inode const& i) const {
  auto const at = mounts_.find(i.key.first);
  return at == mounts_.end() ? nullptr : at->second;
}

/// 0, or an errno. In any thread.
int service::sync_inode(held_inode const& i, mount_ptr const& on) {
  return sync_file(i.fd.get(), on ? on->asked() : i.fd.get());
}

/// Somebody may want to unmount where they are.
void service::forget_directories() {
  if (!files_.empty()) return;
  for (auto const& [key, d] : directories_)
    for (auto const& p : places_of(*d)) p.in->free(p.key);
  last_path_.clear();
  last_directory_.reset();
  directories_.clear();
  if (std::exchange(mounts_, {}).empty()) return;
  if (on_let_go_) on_let_go_();
}

service::mounts service::all_mounts() const {
  mounts all;
  for (auto const& [device, m] : mounts_) all.push_back(m);
  return all;
}

int service::sync_mounts(mounts const& all) {
  for (auto const& m : all)
    if (int const error = sync_held_mount(*m); error != 0) return heard_of(error);
  return home_error_;
}

/// Where the journal has anything of: another file system, with a disk that refuses, is no concern.
/// All where nobody knows.
service::mounts service::mounts_of(home_sync const& what) const {
  if (unheld_lsn_ > head_) return all_mounts();
  std::set<std::uint64_t> devices;
  for (auto const& f : what.files) devices.insert(f->key.first);
  for (auto const& d : what.directories) devices.insert(d->key.first);
  mounts on;
  for (auto const& [device, m] : mounts_)
    if (devices.empty() || devices.contains(device)) on.push_back(m);
  return on;
}

/// What makes all records that are durable now superfluous. Where others have much that is dirty a
/// sync of all would write that as well.
service::home_sync service::what_to_sync() {
  home_sync what;
  what.up_to = log_.durable();
  for (auto const& [key, f] : files_)
    if (is_live(*f)) what.files.push_back(f);
  for (auto const& [key, d] : directories_)
    if (d->last_lsn > head_) what.directories.push_back(d);
  for (auto const& f : orphans_) what.files.push_back(f);
  for (auto const& [d, lsn] : left_in_) what.directories.push_back(d);
  what.on = mounts_of(what);
  if (unheld_lsn_ > head_) return what;
  std::size_t const count = what.files.size() + what.directories.size();
  what.is_all = count == 0 || home_pace::is_all_quicker(count, dirty_bytes(), keep_.flush_bytes);
  return what;
}

int service::sync_held(home_sync const& what) {
  if (what.is_all) return sync_mounts(what.on);
  std::vector<std::function<int()>> all;
  for (auto const& f : what.files) all.push_back([&] { return sync_held_file(*f, false, true); });
  for (auto const& d : what.directories)
    all.push_back([&] { return fsync(d->fd.get()) != 0 ? errno : 0; });
  int error = all_at_once(all);
  for (auto const& m : what.on)
    if (error == 0) error = why_not_kept(m->asked());
  return error == 0 ? home_error_.load() : heard_of(error);
}

/// Of a file without a name that is to be dropped: before the journal lets go of what it has of it
/// that removal has to be durable, from wherever it was, or it could be back without its bytes. Its
/// own sync says so, or on ext4 that of a directory, which writes nothing of the file.
void service::leave_behind(file_ptr const& f, directory_ptr const& in) {
  if (!is_live(*f)) return;
  auto const is_small = [&] {
    struct stat st = {};
    return fstat(f->fd.get(), &st) == 0 && st.st_blocks <= orphan_blocks_max;
  };
  auto const on = mount_of(*f);
  if (in && on && on->kept_by == fs_journal::of_all)
    left_in_[in] = std::max(left_in_[in], f->last_lsn);
  else if (orphans_.size() < orphans_max && is_small())
    orphans_.push_back(f);
  else
    unheld_lsn_ = std::max(unheld_lsn_, f->last_lsn);
}

/// When the journal has let go of what it had of them; it never will when it failed.
void service::free_orphans() {
  auto const counts = [this](std::uint64_t lsn) { return failed() == 0 && lsn > head_; };
  auto const freed = std::partition(orphans_.begin(), orphans_.end(),
                                    [&](auto const& f) { return counts(f->last_lsn); });
  let_go({freed, orphans_.end()});
  orphans_.erase(freed, orphans_.end());
  std::erase_if(left_in_, [&](auto const& one) { return !counts(one.second); });
}

void service::want_checkpoint() {
  if (std::exchange(is_checkpointing_, true)) {
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
  // The list is the loop's again when that is done.
  if (!is_syncing_)
    return pool_.run_first([this] { return home_writer_.write(leaving_), 0; },
                           [this](int) { pass_written(); });
  pool_.run_first(
      [this, what = what_to_sync()]() mutable {
        // Its last descriptors of removed files are closed here, which takes time.
        home_sync const now = std::exchange(what, {});
        return log_.checkpoint(now.up_to, [&] { return sync_held(now); });
      },
      [this](int error) { checkpointed(error); });
}

/// What was written meanwhile is written as well, until it is little.
void service::pass_written() {
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
    for (auto& [key, f] : files_) {
      if (f->last_lsn == 0 || is_live(*f)) continue;
      f->last_lsn = 0;
      f->explained.clear();
      forget_name(*f);
      for (auto const& p : places_of(*f)) p.in->clear_logged(p.key);
    }
    free_orphans();
    for (auto& [key, d] : directories_) {
      if (d->last_lsn == 0 || d->last_lsn > head_) continue;
      d->last_lsn = 0;
      for (auto const& p : places_of(*d)) p.in->clear_logged(p.key);
    }
  }
  // Of what failed at home sync_home tells; when the journal failed, programs go alone.
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

}  // namespace sluice::journal
