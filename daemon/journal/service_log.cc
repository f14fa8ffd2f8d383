// SPDX-License-Identifier: Apache-2.0
// What the loop writes: records of a file into the journal, or the file itself at home, and then a
// revoke of what the journal had of it.
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sync.h"
#include "journal/mark.h"
#include "journal/service.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t spared_share = 16;
constexpr std::size_t ranges_max = 128;  // each is a question to the kernel at every fsync

}  // namespace

int service::put(record const& r, std::uint64_t& lsn) {
  // What was synced at home because the journal was full has to be revoked in it.
  bool const is_needed = r.what == kind::revoke || r.what == kind::unlink;
  int const failed = log_.try_append(r, lsn, is_needed ? 0 : log_.room() / spared_share);
  if (failed == 0) content_lsn_ = lsn;
  if (failed == 0 && r.what == kind::unlink) unlinked_lsn_ = lsn;
  if (failed == ENOSPC && !is_checkpointing_) want_checkpoint();
  return failed;
}

/// A stage that goes without us looks at this flag to know whether it has to mark the file.
void service::raise_logged(held_inode const& i, area& asked, bool& good) {
  for (auto const& p : places_of(i)) {
    if (p.in == &asked)
      good = good && p.in->raise_surely(p.key, abi::order_logged);
    else
      p.in->raise(p.key, abi::order_logged);
  }
}

/// By its path, on a mount of that file's device: none that a user mounted is asked.
descriptor service::open_directory(std::string const& path, held_file const& f) {
  auto const on = mount_of(f);
  if (!on) return {};
  mount_root& root = on->root;
  if (descriptor found = root.open_directory(path)) return found;
  struct stat st = {};
  if (fstat(f.fd.get(), &st) == 0) root = root_above(path, st.st_dev);
  return root.open_directory(path);
}

service::directory_ptr service::hold_directory(std::string const& path, held_file const& f,
                                               std::string const& name) {
  auto const has_it = [&](int directory) {
    struct stat there = {};
    return stat_below(directory, name.c_str(), there) == 0 && there.st_ino == f.key.second &&
           device_word(there) == f.key.first;
  };
  if (path == last_path_ && has_it(last_directory_->fd.get())) return last_directory_;
  descriptor fd = open_directory(path, f);
  struct stat st = {};
  // The path may mean something else by now, or in another mount namespace.
  if (!fd || fstat(fd.get(), &st) != 0 || !has_it(fd.get())) return {};
  file_key const key = {device_word(st), st.st_ino};
  directory_ptr d;
  if (auto const at = directories_.find(key); at != directories_.end()) {
    d = at->second;
  } else {
    d = std::make_shared<held_directory>();
    d->key = key;
    if (identify(fd.get(), d->id) != 0) return {};
    d->fd = std::move(fd);
    d->is_marked = has_mark(d->fd.get(), super_);
    directories_.emplace(key, d);
  }
  last_path_ = path;
  last_directory_ = d;
  return d;
}

/// Recovery may find another file under that name. The ctime of that file says whether it came
/// before or after, unless it was changed in the tick of the clock in which this one began.
bool service::is_free_before(std::string const& name, std::uint64_t born_ns) const {
  // A stage that rested noted nothing, and one may have been removing a name when it woke. So names
  // of files that were born soon after count as unknown.
  constexpr std::uint64_t under_way_ns = 20'000'000;
  return std::all_of(areas_.begin(), areas_.end(), [&](auto const& a) {
    std::uint64_t const woken_ns = std::max(woken_ns_, a->unnoted_until_ns());
    bool const is_noted = woken_ns == 0 || born_ns > woken_ns + under_way_ns;
    return is_noted && abi::given_up(a->memory(), name).load() < born_ns;
  });
}

/// The creation of a file that has no durable name yet. False: home has to be synced, with
/// `unknown` if that is set.
bool service::name_first(held_file& f, request const& r, found const& now, directory_ptr& unknown,
                         std::uint64_t& lsn) {
  std::string path, name = now.name;
  directory_ptr d = now.in;
  // A mode says less than its list does.
  if (now.may_have_list && fgetxattr(f.fd.get(), access_list_name, nullptr, 0) > 0) return false;
  if (!d && find_name(f.fd.get(), now.st, path, name)) d = hold_directory(path, f, name);
  if (!d) return false;
  unknown = d;
  d->habit.created();
  if (!d->is_durable || d->is_marked) return false;
  if (keep_.learns_directories && d->habit.is_synced_anyway()) {
    unknown.reset();
    return false;
  }
  auto const taken = names_.find({d->key, name});
  if (taken != names_.end() && taken->second != &f) {
    held_file& before = *taken->second;
    struct stat st = {};
    // One that was renamed must not be undone: its new name becomes durable with this directory.
    if (fstat(before.fd.get(), &st) != 0 || st.st_nlink != 0) {
      names_.erase(taken);
      return false;
    }
    record gone;
    gone.what = kind::unlink;
    gone.file = before.id;
    gone.directory = d->id;
    gone.name = name;
    gone.mode = before.link->mode;
    if (put(gone, lsn) != 0) return false;
    d->last_lsn = lsn;
    forget_name(before);
    let_go_of_replaced(before, d);
  }
  if (!is_free_before(name, now.born.ns)) return false;
  bool good = true;
  raise_logged(*d, *r.from, good);
  if (!good || (flags_of(*d) & abi::order_unlogged) != 0) return false;
  record made;
  made.what = kind::create;
  made.file = f.id;
  made.changed_ns = keep_.tells_births ? now.born.ns : 0;
  made.directory = d->id;
  made.name = name;
  made.mode = now.st.st_mode;
  made.uid = now.st.st_uid;
  made.gid = now.st.st_gid;
  if (put(made, lsn) != 0) return false;
  d->last_lsn = lsn;
  f.link = std::make_unique<logged_name>(logged_name{d, name, made.mode});
  names_[{d->key, name}] = &f;
  unknown.reset();
  return true;
}

bool service::write_pages(held_file& f, found const& now, std::uint64_t& lsn) {
  record r;
  r.file = f.id;
  r.changed_ns = changed_ns(now.st);
  auto const size = static_cast<std::uint64_t>(now.st.st_size);
  r.what = kind::owner;
  r.uid = now.st.st_uid;
  r.gid = now.st.st_gid;
  if (put(r, lsn) != 0) return false;
  r.what = kind::truncate;
  if (now.what.low_size != ~std::uint64_t{0} && f.has_baseline) {
    r.offset = std::min(now.what.low_size, size);
    if (put(r, lsn) != 0) return false;
  }
  r.what = kind::data;
  for (auto const& [first, end] : now.what.pages.all()) {
    std::uint64_t const from = first * page_bytes, count = std::min(end * page_bytes, size) - from;
    if (read_.size() < count) read_.resize(count);
    std::span const bytes = std::span(read_).first(count);
    std::size_t had = 0;
    while (had < bytes.size()) {
      ssize_t const n =
          pread(f.fd.get(), bytes.data() + had, bytes.size() - had, static_cast<off_t>(from + had));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;  // cut short meanwhile: home has to be synced
      had += static_cast<std::size_t>(n);
    }
    if (had == 0) continue;
    r.offset = from;
    r.bytes = bytes.first(had);
    if (put(r, lsn) != 0) return false;
  }
  r.bytes = {};
  if (size == f.size && f.has_baseline && now.what.low_size == ~std::uint64_t{0}) return true;
  r.what = kind::truncate;
  r.offset = size;
  return put(r, lsn) == 0;
}

bool service::write_log(file_ptr const& f, request const& r, found& now, way how) {
  std::uint64_t lsn = 0;
  bool good = true;
  raise_logged(*f, *r.from, good);
  // Who went his own way before he could see the flag has not been told to mark the file.
  if (!good || (flags_of(*f) & abi::order_unlogged) != 0) return false;
  auto const size = static_cast<std::uint64_t>(now.st.st_size);
  if (how != way::pages) {
    now.what.pages.clear();
    now.what.pages.add(0, (size + page_bytes - 1) / page_bytes);
  }
  if (how == way::first_all) {
    directory_ptr unknown;
    if (!name_first(*f, r, now, unknown, lsn)) {
      if (lsn != 0) f->last_lsn = lsn;
      sync_home(f, r, now, unknown);
      return true;
    }
  }
  bool const is_written = write_pages(*f, now, lsn);
  if (lsn != 0) f->last_lsn = lsn;
  // A program that has gone its own way since the pages were taken has marked what it synced.
  if (!is_written || (flags_of(*f) & abi::order_unlogged) != 0) return false;
  ++counts_.logged;
  told_.logged(*r.from, f->last_lsn);
  f->has_baseline = true;
  f->explained.add(now.what.pages);
  if (f->explained.all().size() > ranges_max && !is_checkpointing_) want_tidying(ranges_max / 2);
  if (how == way::first_all) settle(f, now);
  f->size = size;
  f->changed_ns = changed_ns(now.st);
  f->is_ctime_proof = now.is_ctime_proof;
  auto places = places_of(*f);
  if (f->link)
    for (auto const& p : places_of(*f->link->in)) places.push_back(p);
  await(f, r, now, std::move(places));
  return true;
}

/// All of it is durable as it was found.
void service::settle(file_ptr const& f, found const& now) {
  struct stat const& st = now.st;
  f->size = static_cast<std::uint64_t>(st.st_size);
  f->changed_ns = changed_ns(st);
  f->is_ctime_proof = now.is_ctime_proof;
  f->mode = st.st_mode;
  f->uid = st.st_uid;
  f->gid = st.st_gid;
}

void service::sync_home(file_ptr const& f, request const& r, found const& now,
                        directory_ptr const& with) {
  ++counts_.synced;
  told_.synced(*r.from);
  f->is_busy = true;
  std::uint64_t const below = log_.next_record();
  bool const only_bytes = f->has_baseline && now.seen.is_overwrite && !now.seen.has_new_metadata &&
                          !with && !now.seen.is_native && now.seen.is_linked_once;
  found durable = now;
  if (only_bytes) {  // and nothing else
    durable.st.st_mode = f->mode;
    durable.st.st_uid = f->uid;
    durable.st.st_gid = f->gid;
  } else {
    f->is_moved = false;
  }
  bool const may_answer = !is_live(*f) && !now.seen.is_native && !with;
  bool const has_records = is_live(*f);
  auto const work = [this, f, r, with, only_bytes, may_answer, has_records, on = mount_of(*f)] {
    int error = sync_held_file(*f, only_bytes, has_records);
    if (error == 0 && with) error = sync_inode(*with, on);
    // Now and then it costs a commit, so only where the journal lets go of what it has.
    if (error == 0 && !with && has_records && on) error = why_given_up(on->asked());
    if (error == 0 && may_answer) answer(r, 0);  // what follows in the loop changes nothing of it
    return error != 0 && has_records ? lost_at_home(error) : error;
  };
  pool_.run(work, [this, f, r, durable, below, with](int error) {
    if (error == 0 && with) with->is_durable = true;
    synced(f, r, durable, below, error);
  });
}

/// Whose pages are whose may be told by now.
void service::ask_again() {
  for (auto const& [key, f] : files_)
    for (auto const& p : places_of(*f)) p.in->ask_again(p.key);
  for (auto const& [key, d] : directories_)
    for (auto const& p : places_of(*d)) p.in->ask_again(p.key);
}

void service::synced(file_ptr const& f, request const& r, found const& now, std::uint64_t below,
                     int error) {
  if (error != 0) {
    f->has_failed = true;
    f->has_baseline = false;
    for (auto const& p : places_of(*f)) p.in->give_back(p.key);
    answer(r, error);
    return go_on(f);
  }
  f->has_baseline = f->is_identified;
  settle(f, now);
  f->explained.clear();
  bool const heals = now.seen.is_native && !now.seen.is_bypassed;
  if (f->last_lsn != 0 && is_live(*f)) return revoke(f, r, below, heals);
  if (!heals) {
    finish(f, r);
    return go_on(f);
  }
  heal(f, [this, f, r] {
    finish(f, r);
    go_on(f);
  });
}

void service::revoke(file_ptr const& f, request const& r, std::uint64_t below, bool heals) {
  record gone;
  gone.what = kind::revoke;
  gone.file = f->id;
  gone.below = below;
  std::uint64_t lsn = 0;
  int const failed = keep_.revokes ? put(gone, lsn) : 0;
  if (failed == ENOSPC && home_error_ == 0) {
    parked_.push_back([this, f, r, below, heals] { revoke(f, r, below, heals); });
    return;
  }
  auto const then = [this, f, r, heals](int error) {
    if (error != 0) {
      answer(r, abi::go_native);
      return go_on(f);
    }
    f->last_lsn = 0;
    forget_name(*f);
    for (auto const& p : places_of(*f)) p.in->clear_logged(p.key);
    if (heals) {
      heal(f, [this, f, r] {
        finish(f, r);
        go_on(f);
      });
    } else {
      finish(f, r);
      go_on(f);
    }
  };
  if (failed != 0) return then(failed);
  commits_.push(lsn, then);
}

/// The time in which programs went without us is over for that inode.
void service::heal(std::shared_ptr<held_inode> const& i, std::function<void()> then) {
  pool_.run(
      [this, i, on = mount_of(*i)] {
        int const failed = remove_mark(i->fd.get());
        if (failed != 0) return failed;
        int const error = sync_inode(*i, on);
        return error == 0 ? 0 : lost_at_home(error);  // told once, and nobody waits for this one
      },
      [this, i, then = std::move(then)](int error) {
        if (error == 0) {
          i->is_marked = false;
          for (auto const& p : places_of(*i)) p.in->clear_native(p.key);
        }
        then();
      });
}

}  // namespace sluice::journal
