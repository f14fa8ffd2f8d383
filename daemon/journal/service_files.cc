// SPDX-License-Identifier: Apache-2.0
// What the loop does for one request: finds the file, takes what was noted of it, looks, decides.
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/believed_place.h"
#include "base/sync.h"
#include "journal/mark.h"
#include "journal/service.h"

namespace sluice::journal {

namespace {

constexpr std::size_t files_max = 4096;
constexpr std::size_t sweep_parts = 10;
constexpr std::size_t users_mounts_max = 256;
constexpr unsigned often = 3;  // in a row: large folios, or somebody else indeed
constexpr std::size_t inode_bytes = 4, handle_bytes = 8;  // of ext4: number, generation

bool same(struct stat const& st, file_key const& key) {
  return st.st_ino == key.second && device_word(st) == key.first;
}

std::uint64_t pages_in(std::uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes; }

/// Where something is mounted, or cannot be looked at, somebody has it.
bool is_free_name(logged_name const& n) {
  struct stat there = {};
  return stat_below(n.in->fd.get(), n.name.c_str(), there) == ENOENT;
}

/// It became larger, and nobody noted its last page: by a write past the page cache, say.
bool is_grown_unnoted(held_file const& f, noted const& what, std::uint64_t size) {
  return size > f.size && what.low_size == ~std::uint64_t{0} &&
         !what.pages.contains(pages_in(size) - 1);
}

}  // namespace

/// Kept with it: with many jobs, finding them took more time than all else of an fsync.
std::vector<place> const& service::places_of(held_inode const& i) {
  if (std::exchange(i.places_are, areas_are_) == areas_are_) return i.places;
  i.places.clear();
  for (auto const& a : areas_) i.places.push_back({a.get(), a->key_of(i.key.first, i.key.second)});
  return i.places;
}

std::uint64_t service::flags_of(held_inode const& i) {
  std::uint64_t flags = 0;
  for (auto const& p : places_of(i)) flags |= p.in->flags(p.key);
  return flags;
}

void service::take(held_inode const& i, noted& to) {
  for (auto const& p : places_of(i)) p.in->take(p.key, to);
}

bool service::nobody_syncs_alone() const {
  for (auto const& a : areas_)
    if (a->memory().head.lone.load() != 0) return false;
  return true;
}

/// The journal takes files where what is done to them, and to their names, is kept in order, and
/// those alone that its recovery may write. Elsewhere each program's syncs are its own, without
/// asking again.
bool service::is_kept(request const& r, int fd, struct stat const& st) {
  if ((S_ISDIR(st.st_mode) || is_ours(st)) && is_in_order(r, fd, st)) return true;
  r.from->raise_surely(r.from->key_of(r.device, r.inode), abi::order_own);
  return false;
}

/// Its file system, and root chose to mount it: recovery writes to no other.
bool service::is_in_order(request const& r, int fd, struct stat const& st) {
  if (mounts_.contains(r.device)) return true;
  // What is on no device may have a server that never answers.
  if (major(st.st_dev) == 0 || fs_journal_of(fd) == fs_journal::none) return false;
  auto const known = of_users_until_ns_.find(r.device);
  if (known != of_users_until_ns_.end() && now_ns_ < known->second) return false;
  // By its device: the program's mount may be one of other processes alone.
  if (is_chosen_by_root(sluice::device_number(major(st.st_dev), minor(st.st_dev)))) return true;
  if (of_users_until_ns_.size() >= users_mounts_max) of_users_until_ns_.clear();
  of_users_until_ns_[r.device] = now_ns_ + own_ns;
  return false;
}

/// There is nothing to be known of it, and a program with a lease wants it opened by nobody.
bool service::is_bypassed(file_key const& key) const {
  return std::any_of(areas_.begin(), areas_.end(), [&](auto const& a) {
    return a->is_bypassed(a->key_of(key.first, key.second));
  });
}

/// By its descriptor, whatever has its name.
bool service::open_shown(request const& r, held_file& f, found& now) {
  descriptor const at = fetch(r, false, now.st);
  if (!at || !is_kept(r, at.get(), now.st)) return false;
  f.fd = open_fetched(at.get(), false);
  if (!f.fd) return false;
  make_room(r);
  watch(f);
  return true;
}

/// By its name, where that is in the directory of the last one: each question to /proc takes as
/// long as two others. A process that shows one file and means another harms its own user at most.
bool service::open_beside_last(request const& r, held_file& f, found& now) {
  directory_ptr const d = last_directory_;
  std::string path;
  if (!d || d->key.first != r.device || !mounts_.contains(r.device)) return false;
  if (!split_name(r.from->asking().name_of(r.pid, r.from->owner(), r.fd), path, now.name) ||
      path != last_path_)
    return false;
  // Another's refuses O_NOATIME.
  constexpr int flags = O_RDONLY | O_NOATIME | O_NONBLOCK;
  f.fd = descriptor(open_below(d->fd.get(), now.name.c_str(), flags));
  if (!f.fd) return false;
  make_room(r);
  watch(f);
  if (see(f, now) && same(now.st, f.key) && S_ISREG(now.st.st_mode) && now.st.st_nlink == 1 &&
      is_ours(now.st)) {
    now.in = d;
    return true;
  }
  f.fd = {};
  return false;
}

service::file_ptr service::hold(request const& r, found& now) {
  file_key const key = {r.device, r.inode};
  if (auto const at = files_.find(key); at != files_.end()) {
    at->second->used_ns = asked_ns_ = now_ns_;
    if (is_watched(*at->second)) return at->second;
    // It was bypassed when we rested, or an area had no place for it then.
    at->second->has_baseline = false;
    watch(*at->second);
    return at->second;
  }
  auto f = std::make_shared<held_file>();
  f->key = key;
  if (is_bypassed(key) || (!open_beside_last(r, *f, now) && !open_shown(r, *f, now))) return {};
  f->used_ns = now_ns_;
  auto const on = mount_of(*f);
  auto const* const fs = on ? &on->fs : nullptr;
  f->is_identified = identify(f->fd.get(), f->id, fs) == 0;
  if (!keep_.tells_apart) f->id.handle.resize(inode_bytes), f->id.handle.resize(handle_bytes);
  names_seen const names = names_of(f->fd.get());
  now.may_have_list = names.may_be_list;
  f->is_marked = names.may_be_mark && has_mark(f->fd.get(), super_);
  if (f->is_identified) f->is_identified = hold_mount(*f, now.st);
  if (f->is_identified) {
    if (on_hold_) on_hold_(f->fd.get(), now.st);
    for (auto const& a : areas_) a->tell_device(key.first);
  }
  files_.emplace(key, f);
  return f;
}

bool service::is_watched(held_inode const& i) {
  auto const& all = places_of(i);
  return !is_resting_ &&
         std::all_of(all.begin(), all.end(), [](auto& p) { return p.in->is_watched(p.key); });
}

/// From now on programs note what they write to it, and the names that they take away: before
/// anything of it is looked at. In an area without a place for it that is as if it were bypassed.
void service::watch(held_inode const& i) {
  for (auto const& p : places_of(i)) p.in->raise_surely(p.key, abi::order_watched);
  asked_ns_ = now_ns_;
  if (!std::exchange(is_resting_, false)) return;
  woken_ns_ = realtime_ns();
  tell_whether_resting();
}

void service::tell_whether_resting() {
  for (auto const& a : areas_) a->rest(is_resting_);
}

/// The first sync of each file is at home again, and until then nobody has to note anything.
void service::rest() {
  bool const is_idle = rests_after_ns_ != 0 && now_ns_ - asked_ns_ >= rests_after_ns_;
  if (!is_idle || !is_quiet()) return;
  if (is_resting_) return forget_directories();
  std::vector<file_ptr> all;
  for (auto const& [key, f] : files_) all.push_back(f);
  for (auto const& f : all) {
    if ((flags_of(*f) & abi::order_bypass) == 0) {
      drop(f);
    } else {  // that stays true of it, and of another file with its number at worst
      forget_name(*f);
      files_.erase(f->key);
    }
  }
  is_resting_ = true;
  ++counts_.rests;
  tell_whether_resting();
}

/// Forgets a file of which nothing counts any more: its next fsync is at home.
void service::drop(file_ptr const& f) {
  forget_name(*f);
  for (auto const& p : places_of(*f)) p.in->free(p.key);
  files_.erase(f->key);
}

void service::forget_name(held_file& f) {
  if (!f.link) return;
  auto const at = names_.find({f.link->in->key, f.link->name});
  if (at != names_.end() && at->second == &f) names_.erase(at);
  f.link.reset();
}

void service::make_room(request const& r) {
  std::uint64_t const key = r.from->key_of(r.device, r.inode);
  auto const is_idle = [&](held_file const& f) {
    return !f.is_busy && f.waiting.empty() && !is_live(f);
  };
  if (r.from->is_tight(key))
    for (auto const& [device, inode] : r.from->neighbours(key)) {
      auto const at = files_.find({device, inode});
      bool const is_asked = device == r.device && inode == r.inode;
      bool const is_held = at != files_.end();
      if (!is_held && !is_asked && !directories_.contains({device, inode})) {
        std::uint64_t const other = r.from->key_of(device, inode);
        if ((r.from->flags(other) & abi::order_bypass) == 0) r.from->free(other);
      } else if (is_held && is_idle(*at->second) &&
                 (flags_of(*at->second) & abi::order_bypass) == 0) {
        drop(file_ptr(at->second));
      }
    }
  if (files_.size() < std::max(files_max, look_again_at_)) return;
  std::vector<file_ptr> idle;
  for (auto const& [k, f] : files_)
    if (is_idle(*f) && (flags_of(*f) & abi::order_bypass) == 0) idle.push_back(f);
  std::sort(idle.begin(), idle.end(), [](auto& a, auto& b) { return a->used_ns < b->used_ns; });
  idle.resize(std::min(idle.size(), files_max / 4));
  for (auto const& f : idle) drop(f);
  look_again_at_ = files_.size() + files_max / 16;  // to look at all of them is dear
  if (idle.empty() && !is_checkpointing_) want_checkpoint();
}

/// Files whose names in this directory the journal has, and which are removed by now. The sync of
/// the directory makes that durable.
service::files service::removed_from(directory_ptr const& d) const {
  files gone;
  struct stat st = {};
  for (auto at = names_.lower_bound({d->key, ""}); at != names_.end(); ++at) {
    if (at->first.first != d->key) break;
    held_file const& f = *at->second;
    if (fstat(f.fd.get(), &st) == 0 && st.st_nlink == 0) gone.push_back(files_.at(f.key));
  }
  return gone;
}

/// Looks at `count` files after `behind`, and returns those that have no name any more. `behind`
/// then is the last one looked at, or no file when the end was reached.
service::files service::gone_among(file_key& behind, std::size_t count) const {
  files gone;
  auto at = files_.upper_bound(behind);
  for (; count != 0 && at != files_.end(); ++at, --count) {
    struct stat st = {};
    if (fstat(at->second->fd.get(), &st) == 0 && st.st_nlink == 0) gone.push_back(at->second);
    behind = at->first;
  }
  if (at == files_.end()) behind = {};
  return gone;
}

/// Looks at a part of the files at each call: programs that ask meanwhile would wait for all.
void service::sweep_some() {
  let_go(std::exchange(replaced_, {}));
  std::uint64_t const before = unlinked_lsn_;
  tell_removed(gone_among(swept_to_, files_.size() / sweep_parts + 1), {});
  if (unlinked_lsn_ != before) commits_.push(unlinked_lsn_);
}

void service::tidy_up() {
  std::erase_if(directories_, [this](auto const& one) {
    struct stat st = {};
    if (fstat(one.second->fd.get(), &st) == 0 && st.st_nlink != 0) return false;
    unheld_lsn_ = std::max(unheld_lsn_, one.second->last_lsn);
    return true;
  });
  for (auto const& a : areas_) a->reclaim(now_ns_);
  log_.look();
}

/// Tells the journal that files have no name any more. `surely`: the directory of those was synced
/// since, whoever has their names. False: it had no room.
bool service::tell_removed(files gone, files const& surely) {
  bool all = true;
  for (auto const& f : gone) {
    // A name that another file has by now was perhaps given by a rename that no crash has to keep:
    // without the old file there the name would be nobody's.
    directory_ptr const in = f->link ? f->link->in : directory_ptr{};
    bool const is_free = !f->link || std::find(surely.begin(), surely.end(), f) != surely.end() ||
                         is_free_name(*f->link);
    if (f->link && is_live(*f) && !is_free) continue;
    if (f->link && is_live(*f) && keep_.tells_removed) {
      record r;
      r.what = kind::unlink;
      r.file = f->id;
      r.directory = f->link->in->id;
      r.name = f->link->name;
      r.mode = f->link->mode;
      if (put(r, in->last_lsn) != 0) {
        all = false;
        continue;
      }
    }
    forget_name(*f);
    // A request that is under way keeps it.
    if (f->is_busy || !f->waiting.empty()) continue;
    leave_behind(f, in);
    drop(f);
  }
  let_go(std::move(gone));
  return all;
}

/// Of a file whose name another one has by now, and whose removal the journal knows: nothing of it
/// is written home any more.
void service::let_go_of_replaced(held_file const& f, directory_ptr const& in) {
  if (f.is_busy || !f.waiting.empty()) return;
  file_ptr const last = files_.at(f.key);
  leave_behind(last, in);
  drop(last);
  replaced_.push_back(last);
}

/// The last descriptor of a removed file frees its blocks: that takes too long for the loop.
void service::let_go(files removed) {
  if (removed.empty()) return;
  pool_.run([last = std::make_shared<files>(std::move(removed))] { return last->clear(), 0; },
            [](int) {});
}

/// Of a file that is not held the journal has records at most when it was removed: a drain has
/// nothing to wait for.
void service::pass(request const& r) {
  answer(r, r.kind == abi::order_request::drain ? 0 : abi::go_native);
}

void service::on_file(request const& r) {
  bool const is_held = files_.contains({r.device, r.inode});
  if (r.kind == abi::order_request::drain && !is_held) return pass(r);
  found now;
  file_ptr const f = hold(r, now);
  if (!f) return pass(r);
  if (f->is_identified) r.from->hold(r);  // else it is sent back
  if (f->is_busy) return f->waiting.push_back(r);
  act(f, r, std::move(now));
}

/// The request is done. What was drained to be bypassed is not held any more, and its descriptor is
/// closed before the program goes on: it may be about to take a lease.
void service::finish(file_ptr const& f, request const& r) {
  if (r.kind != abi::order_request::drain || is_live(*f) || !is_bypassed(f->key))
    return answer(r, 0);
  forget_name(*f);
  files_.erase(f->key);
  closing_.emplace_back(f, r);
}

/// Threads that were at it, and a checkpoint, may have it for a moment more.
void service::answer_closed() {
  std::erase_if(closing_, [this](auto const& one) {
    if (!one.first.expired()) return false;
    answer(one.second, 0);
    return true;
  });
}

void service::go_on(file_ptr const& f) {
  f->is_busy = false;
  while (!f->is_busy && !f->waiting.empty()) {
    request const next = f->waiting.front();
    f->waiting.pop_front();
    act(f, next, {});
  }
}

/// May be dirty at home, for the journal has them or is to have them.
page_ranges service::known_pages(held_file const& f, found const& now) {
  return all_of({&f.explained, &f.leaving, &now.what.pages});
}

/// Pages that nobody noted are dirty at home. Writers note after their write, so one that is just
/// writing is given a second look. The kernel counts through all pages that it has of the file.
bool service::is_foreign(held_file& f, found& now) {
  auto const size = static_cast<std::uint64_t>(now.st.st_size);
  std::uint64_t const end = pages_in(size);
  auto const are_all_known = [&] {
    if (is_grown_unnoted(f, now.what, size)) return false;
    std::uint64_t cached = 0;
    bool const is_so = dirty_pages(f.fd.get(), now.known, end, &cached) == 0;
    if (cached > looked_pages_max) f.unseen_until_ns = now_ns_ + own_ns;
    return is_so;
  };
  if (are_all_known()) return false;
  f.is_shared = true;
  add_folios(f.fd.get(), now.what.pages);
  for (int look = 0; look < 2; ++look) {
    now.known = known_pages(f, now);
    if (are_all_known()) return false;
    usleep(20);
    take(f, now.what);
  }
  now.known = known_pages(f, now);
  return !are_all_known();
}

/// It takes long, and the answer changes nothing until the request is answered: then it is looked
/// at while the journal is flushed. Not a file that somebody else was found to write meanwhile.
bool service::may_look_later(held_file const& f, found const& now) const {
  auto const size = static_cast<std::uint64_t>(now.st.st_size);
  std::uint64_t const pages = pages_in(size);
  if (f.is_shared || !keep_.sees_foreign) return false;
  if (pages > looked_pages_max || is_grown_unnoted(f, now.what, size)) return false;
  return look_ns(now.known, pages) > keep_.look_at_once_ns;
}

/// It is in the journal, and answered when that is durable and nothing else is dirty.
void service::await(file_ptr const& f, request const& r, found& now, std::vector<place> places) {
  awaited a = {f->last_lsn, r, std::move(places)};
  if (now.looks_later && keep_.awaits_looks) {
    a.look =
        looks_.begin(f, std::move(now.known), pages_in(static_cast<std::uint64_t>(now.st.st_size)));
    a.anew = [this, seen = std::weak_ptr(f), r] {
      if (auto const it = seen.lock()) it->is_shared = true;
      on_file(r);
    };
  }
  commits_.push(std::move(a));
}

/// What was noted is taken before the file is looked at.
bool service::see(held_file& f, found& now) {
  take(f, now.what);
  now.flags = flags_of(f);
  std::uint64_t const looked_ns = coarse_ns();
  if (!look_at(f.fd.get(), now.st, now.born)) return false;
  auto const on = mount_of(f);
  now.is_ctime_proof = ctime_proves(changed_ns(now.st), looked_ns, on && on->has_fine_times);
  return true;
}

void service::look(held_file& f, request const& r, found& now) {
  file_seen& s = now.seen;
  if (!now.in && !see(f, now)) {
    s.is_bypassed = true;
    return;
  }
  struct stat const& st = now.st;
  auto const size = static_cast<std::uint64_t>(st.st_size);
  noted& what = now.what;
  s.is_identified = f.is_identified;
  s.is_live = is_live(f);
  s.has_failed = f.has_failed;
  s.has_baseline = f.has_baseline;
  s.is_created = what.created != 0 && what.created == now.born.word;
  s.is_bypassed = (now.flags & abi::order_bypass) != 0 || !is_ours(st);
  s.is_native = (now.flags & abi::order_native) != 0 || f.is_marked;
  s.is_whole = what.is_whole;
  s.is_linked_once = st.st_nlink == 1;
  s.is_ending = is_ending_ || log_.failed() != 0;
  s.size = size;
  if (!f.has_baseline) return;
  if (what.low_size < size) what.pages.add(what.low_size / page_bytes, pages_in(size));
  s.has_changed = !what.pages.empty() || size != f.size || what.low_size != ~std::uint64_t{0};
  std::uint64_t const changed = changed_ns(st);
  bool const is_cut = size < f.size && what.low_size > size;
  // What the journal holds is acknowledged without a sync only where nothing was changed for sure.
  bool const is_still = changed == f.changed_ns && (f.is_ctime_proof || !s.is_live);
  s.is_foreign = is_cut || (!s.has_changed && !s.is_whole && !is_still);
  s.is_unseen = keep_.sees_foreign && now_ns_ < f.unseen_until_ns;
  bool const is_asked = !s.is_foreign && !s.is_whole && !s.is_bypassed && !s.is_unseen;
  if (is_asked) now.known = known_pages(f, now);
  now.looks_later = is_asked && may_look_later(f, now);
  if (is_asked && !now.looks_later) {
    s.is_foreign = is_foreign(f, now);
    f.foreign_in_row = s.is_foreign ? f.foreign_in_row + 1 : 0;
    if (f.foreign_in_row >= often) f.unseen_until_ns = now_ns_ + own_ns;
  }
  // A sync of all may have written back what such a one wrote, and not yet made it durable.
  s.is_foreign |= f.is_shared && is_syncing_;
  s.is_foreign &= keep_.sees_foreign;
  what.pages.cut(pages_in(size));
  s.dirty_bytes = what.pages.pages() * page_bytes;
  f.is_moved |= what.is_moved;
  // Recovery asks whose a file is: what the journal has of it is its owner's, who is so at home
  // too.
  s.has_new_metadata = st.st_uid != f.uid || st.st_gid != f.gid;
  if (r.kind == abi::order_request::fsync)
    s.has_new_metadata |= st.st_mode != f.mode || f.is_moved ||
                          (changed != f.changed_ns && changed != modified_ns(st));
  struct stat there = {};
  if (f.link &&
      (stat_below(f.link->in->fd.get(), f.link->name.c_str(), there) != 0 || !same(there, f.key)))
    s.has_new_metadata = true;
  s.is_overwrite = size == f.size && what.low_size == ~std::uint64_t{0};
  s.is_alone =
      asked_.size() <= 1 && commits_.is_idle() && !is_syncing_home() && nobody_syncs_alone();
}

void service::act(file_ptr const& f, request const& r, found now) {
  if (home_error_ != 0 && is_live(*f)) return answer(r, home_error_);
  look(*f, r, now);
  way how = choose(now.seen);
  if (r.kind == abi::order_request::drain) {
    if (how == way::pass || !is_live(*f)) return finish(f, r);
    how = way::native;
  }
  // Without a journal nothing can be revoked: the program goes alone, and marks the file.
  if (home_error_ != 0 || log_.failed() != 0) how = way::pass;
  switch (how) {
    case way::pass:
      f->has_baseline = false;
      for (auto const& p : places_of(*f)) {
        p.in->give_back(p.key);
        p.in->ask_again(p.key);
      }
      return answer(r, abi::go_native);
    case way::alone:
    case way::own:
      for (auto const& p : places_of(*f)) {
        p.in->let_alone(p.key, {now.seen.size, f->mode, f->uid, f->gid, 1});
        if (how == way::own) p.in->let_go(p.key);
      }
      return sync_home(f, r, now);
    case way::native:
      // Another mode may be durable soon than the word says.
      for (auto const& p : places_of(*f)) p.in->ask_again(p.key);
      learn(*f, r, now);
      return sync_home(f, r, now);
    case way::nothing:
      return await(f, r, now, places_of(*f));
    case way::pages:
    case way::all:
    case way::first_all:
      break;
  }
  if (!write_log(f, r, now, how)) sync_home(f, r, now);
}

/// A file may have been made while the stages noted nothing. It counts for the habit of its
/// directory all the same.
void service::learn(held_file const& f, request const& r, found const& now) {
  constexpr std::uint64_t just_ns = 1'000'000'000;
  std::uint64_t const woken_ns = std::max(woken_ns_, r.from->unnoted_until_ns());
  if (f.has_baseline || woken_ns == 0) return;
  std::uint64_t const born_ns = now.born.ns;
  std::string path, name;
  if (born_ns > woken_ns || born_ns + just_ns < woken_ns) return;
  if (!find_name(f.fd.get(), now.st, path, name)) return;
  if (directory_ptr const d = hold_directory(path, f, name)) d->habit.created();
}

void service::on_directory(request const& r) {
  file_key const key = {r.device, r.inode};
  directory_ptr d;
  struct stat st = {};
  if (auto const at = directories_.find(key); at != directories_.end()) {
    d = at->second;
  } else {
    d = std::make_shared<held_directory>();
    descriptor const theirs = fetch(r, true, st);
    d->key = key;
    if (theirs && is_kept(r, theirs.get(), st)) d->fd = open_fetched(theirs.get(), true);
    if (!d->fd || identify(d->fd.get(), d->id) != 0) return answer(r, abi::go_native);
    d->is_marked = has_mark(d->fd.get(), super_);
    directories_.emplace(key, d);
  }
  bool const heals = (flags_of(*d) & abi::order_native) != 0 || d->is_marked;
  r.from->hold(r);
  asked_ns_ = now_ns_;
  d->habit.synced();
  if (home_error_ != 0) return answer(r, home_error_);
  if (log_.failed() != 0) return answer(r, abi::go_native);
  ++counts_.synced;
  told_.synced(*r.from);
  bool const has_names = anything_live();
  pool_.run(
      [this, d, has_names, on = mount_of(*d)] {
        int const error = sync_inode(*d, on);
        return error != 0 && has_names ? lost_at_home(error) : error;
      },
      [this, d, r, heals, surely = removed_from(d)](int error) {
        if (error != 0) return answer(r, error);
        d->is_durable = true;
        if (d->habit.is_sure())
          for (auto const& p : places_of(*d)) p.in->let_go_directory(p.key);
        name_synced(d, r, heals, surely);
      });
}

/// Recovery must not make again what was removed for good: those too that were found meanwhile. A
/// name elsewhere is not this directory's to keep away.
void service::name_synced(directory_ptr const& d, request const& r, bool heals,
                          files const& surely) {
  if (!tell_removed(removed_from(d), surely)) {
    if (failed() != 0) return answer(r, abi::go_native);
    parked_.push_back([this, d, r, heals, surely] { name_synced(d, r, heals, surely); });
    return want_checkpoint();
  }
  if (!heals) return commits_.push({.lsn = unlinked_lsn_, .asked = r});
  commits_.push(unlinked_lsn_, [this, d, r](int failed) {
    if (failed != 0) return answer(r, abi::go_native);
    heal(d, [this, d, r] { answer(r, 0); });
  });
}

void service::on_sync_all(request const& r) {
  if (home_error_ != 0) return answer(r, home_error_);
  if (!anything_live()) return answer(r, 0);
  // What is appended must be durable before the checkpoint begins, or it would not be trimmed.
  commits_.push(content_lsn_, [this, r](int failed) {
    if (failed != 0) return answer(r, abi::go_native);
    sync_all_.push_back(r);
    want_checkpoint();
  });
}

}  // namespace sluice::journal
