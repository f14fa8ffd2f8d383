// SPDX-License-Identifier: Apache-2.0
// A handle is believed only if it found its file before anything was written: xfs counts an inode's
// generation up, so a file made here can get the handle of another that the crash lost.
// A file that the crash lost is made without a name, marked, and then linked, so a second recovery
// tells it from a file that somebody else put there.
#include "journal/replay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/open_file.h"
#include "journal/file_disk.h"
#include "journal/stale_pages.h"

namespace sluice::journal {

namespace {

constexpr std::size_t open_files_max = 512;
constexpr int name_tries = 16;
constexpr mode_t special = S_ISUID | S_ISGID;
constexpr char const* earlier_prefix = ".sluice-earlier.";

/// Who was in its group is among all others now, and the other way round.
mode_t mode_in_any_group(mode_t mode) {
  mode_t const of_both = mode & (mode >> 3) & 07;
  return (mode & (S_ISVTX | S_IRWXU)) | of_both << 3 | of_both;
}

}  // namespace

bool is_changed_since(crash_time const& when, home const& at,
                      std::array<std::uint8_t, 16> const& fs, struct stat const& st) {
  return when.is_foreign(changed_ns(st)) && !at.mounting(fs).explains(st);
}

char const* users_doing(int error) {
  switch (error) {
    case held:
      return "somebody holds the lock of it, or of its directory";
    case unasked:
      return "somebody holds so many locks of its user's files that nobody waited for this one";
    case EWOULDBLOCK:
      return "somebody holds a lease on it";
    case ETXTBSY:
      return "it runs as a program";
    case EPERM:
      return "it may not be written any more";
    case ENOKEY:
      return "its user's key is not there";
    case EDQUOT:
      return "its user's quota is used up";
    case of_somebody_else:
      return given_away_text;
    default:
      return nullptr;
  }
}

char const* users_doing_there(int error) {
  switch (error) {
    case of_somebody_else:
      return "its user cannot open it, or the directory that it is in";
    case EACCES:
    case EPERM:
      return "its user may not change the directory that it is in";
    case EBUSY:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENOTDIR:
    case ENOTEMPTY:
    case EXDEV:
      return "somebody has put something else in its place";
    default:
      return users_doing(error);
  }
}

/// For people.
std::string replay::place_of(std::array<std::uint8_t, 16> const& fs, int directory,
                             std::string const& name) const {
  std::string const in = home_.place_of(fs, directory);
  return in.starts_with('/') ? in + "/" + name : name + " in " + in;
}

/// What has that name gets another one beside it. Empty: it does not, with errno.
std::string replay::move_aside(int directory, std::string const& name, std::uint64_t inode) const {
  constexpr std::size_t name_bytes = 200;
  auto const named = [&](std::uint64_t number) {
    return fmt::format("{}{:x}.{}", earlier_prefix, number, name.substr(0, name_bytes));
  };
  // Somebody may have made one of that name, to be in our way.
  std::string to = named(inode);
  int error = hands_.rename(directory, name, to);
  if (error == EEXIST) error = hands_.rename(directory, name, to = named(random_salt()));
  errno = error;
  return error == 0 ? to : std::string();
}

/// 0: that file has the name there, ENOENT: it has not, or another errno.
int replay::look_for(int directory, std::string const& name, int fd) const {
  struct stat there = {}, file = {};
  descriptor found;
  if (fstat(fd, &file) != 0) return errno;
  if (int const error = hands_.look_up(directory, name, found); error != 0)
    return error == ENOTDIR ? ENOENT : error;
  if (fstat(found.get(), &there) != 0) return errno;
  return is_same_file(there, file) ? 0 : ENOENT;
}

replay::~replay() {
  for (auto const& [id, o] : open_) close(o.fd);
}

void replay::fail(record const& r, int fd, int error) const {
  throw sluice_error(
      fmt::format("{} of {}: {}; the journal is kept", name_of(r.what),
                  fd >= 0 ? home_.place_of(r.file.fs, fd) : "a file on " + uuid_text(r.file.fs),
                  error == of_somebody_else || is_out_of_reach(error) ? users_doing_there(error)
                                                                      : std::strerror(error)));
}

int replay::remember(file_id const& id, int fd) {
  if (open_.size() >= open_files_max) forget(file_id(ages_.front()));
  ages_.push_back(id);
  open_[id] = {fd, std::prev(ages_.end())};
  return fd;
}

void replay::forget(file_id const& id) {
  auto const at = open_.find(id);
  if (at == open_.end()) return;
  flush(at->first, at->second.fd);
  close(at->second.fd);
  ages_.erase(at->second.age);
  open_.erase(at);
}

/// False: that is an error, as `why` is none of its users' doing, or nothing is left aside.
bool replay::leave_aside(file_id const& id, int fd, char const* why) {
  if (!leaves_aside_ || why == nullptr) return false;
  left_aside& one = aside_[id];
  one.why = why;
  struct stat st = {};
  bool const is_written = written_.erase(id) != 0;
  if (is_written && fd >= 0 && fstat(fd, &st) == 0) one.changed_ns = changed_ns(st);
  if (made_.contains(id)) take_back(id, one);
  return true;
}

/// The journal calls it by what it was, so a part of it must not stay for what is kept: that makes
/// it again. If somebody else has changed it by now, it gets another name. One that is held stays,
/// and the time that we left it at is kept, so what is kept knows it as ours.
void replay::take_back(file_id const& id, left_aside& one) {
  made_one const m = made_.extract(id).mapped();
  one.is_lost = true;
  one.name = m.name;
  one.changed_ns = 0;
  // What is open stays as it is: this may be one that is about to be closed.
  file_id const* const in = name_now(m.directory);
  descriptor const above(in != nullptr ? home_.open(*in, O_RDONLY | O_DIRECTORY) : -1);
  descriptor const file(home_.open(m.now, O_PATH));
  int const directory = m.is_homeless ? into_ : above.get();
  struct stat st = {};
  if (!file || fstat(file.get(), &st) != 0) return;
  bool const is_ours = changed_ns(st) == m.changed_ns;
  if (is_ours) one.changed_ns = m.changed_ns;
  if (directory < 0 || look_for(directory, m.given, file.get()) != 0) return;
  if (is_ours) {
    if (hands_.unlink(directory, m.given) == 0) one.changed_ns = 0;
    return;
  }
  home_.set_mark(file.get(), {}, hands_);  // or a later attempt would take it for its own
  std::string const name = move_aside(directory, m.given, st.st_ino);
  if (!name.empty()) done_.aside.push_back(place_of(id.fs, directory, name));
}

void replay::look_who_changed(file_id const& id, struct stat const& st) {
  auto const at = made_.find(id);
  if (at != made_.end() && at->second.changed_ns != changed_ns(st)) at->second.changed_ns = 0;
}

/// It is as we have left it, or somebody else has changed it before.
void replay::know_changed(file_id const& id, int fd) {
  struct stat st = {};
  auto const at = made_.find(id);
  if (at != made_.end() && at->second.changed_ns != 0 && fstat(fd, &st) == 0)
    at->second.changed_ns = changed_ns(st);
}

/// Of one that home does not have.
bool replay::leave_lost(record const& r, char const* why) {
  if (!leave_aside(r.file, -1, why)) return false;
  left_aside& one = aside_[r.file];
  one.is_lost = true;
  one.name = r.name;
  return true;
}

/// The name stays as it is, and the file comes home all the same.
void replay::leave_name(record const& r, int fd, int error) {
  char const* const why = users_doing_there(error);
  if (!leaves_aside_ || why == nullptr) fail(r, fd, error);
  done_.kept_names.push_back(fmt::format("{} of {}: {}", name_of(r.what), r.name, why));
}

/// What a file system cannot even allocate it may tell those alone who wait for that file: syncfs
/// returns 0.
void replay::flush(file_id const& id, int fd) {
  auto const written = written_.extract(id);
  if (!written) return;
  int error = write_cached(fd);
  if (error == 0) error = hands_.why_unwritten(fd, written.mapped());
  written_[id];  // for whom it is left aside
  if (error == ENODATA &&
      leave_aside(id, fd, "a program has it mapped, and its disk refused bytes"))
    return;
  if (is_out_of_reach(error) && leave_aside(id, fd, users_doing(error))) return;
  written_.erase(id);
  if (error == ENODATA && stale_.empty()) stale_ = home_.place_of(id.fs, fd);
  if (flush_error_ == 0) flush_error_ = error == ENODATA ? EIO : error;
}

int replay::flush() {
  for (auto const& [id, o] : open_) flush(id, o.fd);
  return flush_error_;
}

/// Null: home has no such file, or what has that handle is another one.
file_id const* replay::name_now(file_id const& id) const {
  auto const made = made_.find(id);
  if (made != made_.end()) return &made->second.now;
  return live_.is_live(id) ? &id : nullptr;
}

/// A descriptor that stays ours, or -errno.
int replay::open_file(file_id const& id, int flags) {
  if (auto const at = open_.find(id); at != open_.end()) {
    ages_.splice(ages_.end(), ages_, at->second.age);
    return at->second.fd;
  }
  file_id const* const now = name_now(id);
  if (now == nullptr) return aside_.contains(id) ? -of_somebody_else : -ESTALE;
  int const fd = home_.open(*now, flags | O_NONBLOCK | O_NOCTTY);
  return fd < 0 ? fd : remember(id, fd);
}

/// The same. Its lock may be held, and that of a file is nobody's who opens it: so this is said.
int replay::open_directory(file_id const& id) { return open_file(id, O_RDONLY | O_DIRECTORY); }

/// Owner, group and mode, or an errno. A user whom the name service does not know now may have lost
/// that group. His file keeps the one that it has, and nobody may do more with it than before.
int replay::give(record const& r, int fd, mode_t mode) {
  // The journal holds no file with a list of its own: this is the one that its directory gives.
  int const kept = hands_.remove_attribute(fd, "system.posix_acl_access");
  if (is_out_of_reach(kept)) return kept;
  if (int const error = hands_.set_owner(fd, r.uid, r.gid); error != 0) {
    struct stat st = {};
    if (error != EPERM || fstat(fd, &st) != 0 || st.st_uid != r.uid) return error;
    mode = mode_in_any_group(mode);
    given_[r.file] = {st.st_uid, st.st_gid};
  }
  return hands_.set_mode(fd, mode);
}

bool replay::is_anothers(record const& r, struct stat const& st) const {
  auto const given = given_.find(r.file);
  if (given != given_.end()) return given->second != owner_ids{st.st_uid, st.st_gid};
  auto const known = live_.of(r.file);
  return known != nullptr && is_given_away(*known, st);
}

/// A write takes setuid and setgid from a file, and the kernel had done so; ours would leave them
/// on whatever bytes the journal has. Who still wants them can see what the file is, and set them.
/// 0 or an errno.
int replay::drop_privilege(int fd, struct stat const& st) const {
  return (st.st_mode & special) == 0 ? 0 : hands_.set_mode(fd, st.st_mode & 07777 & ~special);
}

void replay::put(record const& r, int fd) {
  struct stat st = {};
  if (fstat(fd, &st) != 0) fail(r, fd, errno);
  if (!S_ISREG(st.st_mode)) fail(r, fd, EINVAL);
  if (is_anothers(r, st)) {
    if (leave_aside(r.file, fd, given_away_text)) return;
    throw sluice_error(
        fmt::format("{}: {}; the journal is kept", home_.place_of(r.file.fs, fd), given_away_text));
  }
  look_who_changed(r.file, st);
  int error = drop_privilege(fd, st);
  if (error == 0) error = change_bytes(r, fd, st);
  if (error != 0 && !leave_aside(r.file, fd, users_doing(error))) fail(r, fd, error);
}

/// 0 or an errno.
int replay::change_bytes(record const& r, int fd, struct stat const& st) {
  if (r.what == kind::truncate) {
    bool const is_there = static_cast<std::uint64_t>(st.st_size) == r.offset;
    if (int const error = is_there ? 0 : hands_.truncate(fd, r.offset); error != 0) return error;
    if (auto const at = written_.find(r.file); at != written_.end()) at->second.cut(r.offset);
    know_changed(r.file, fd);
    return 0;
  }
  if (written_.find(r.file) == written_.end()) forget_cached(fd);
  if (int const error = hands_.write(fd, r.offset, r.bytes); error != 0) {
    written_[r.file];
    know_changed(r.file, fd);
    return error;
  }
  done_.bytes += r.bytes.size();
  written_[r.file].add(r.offset, r.offset + r.bytes.size());
  know_changed(r.file, fd);
  return 0;
}

/// Makes the name free when an earlier attempt took it, or an earlier file has it still. 0 or an
/// errno: EEXIST a later one has it.
int replay::clear_name(record const& r, int directory) {
  descriptor there;
  if (int const error = hands_.look_up(directory, r.name, there); error != 0)
    return error == ENOENT ? 0 : error;
  struct stat st = {};
  if (fstat(there.get(), &st) != 0) return errno;
  if (is_of_attempt(there.get(), st)) return hands_.unlink(directory, r.name);
  bool const is_made = home_.is_marked(there.get(), mark_);
  if (is_made && overwrites_ && st.st_uid == r.uid) return rename_aside(r, directory, st.st_ino);
  // A time says nothing of another user, who may have waited for the crash, or for our attempts.
  bool const is_foreign =
      is_changed_since(when_, home_, r.file.fs, st) || st.st_uid != r.uid || is_made;
  return is_foreign ? refuse_name(r, directory) : put_aside(r, directory, there.get());
}

/// An attempt made it, and nobody changed it since.
bool replay::is_of_attempt(int fd, struct stat const& st) const {
  std::uint64_t const changed = changed_ns(st);
  return S_ISREG(st.st_mode) && home_.is_marked(fd, mark_) &&
         (when_.is_ours(changed) || live_.has_left_at(changed));
}

/// Whatever has that name stays, and the file is kept with its names: EEXIST.
int replay::refuse_name(record const& r, int directory) {
  if (live_.of(r.file)->is_removed) return EEXIST;
  if (leave_lost(r, "somebody else gave its name to another file")) return EEXIST;
  throw sluice_error(
      fmt::format("{}: was put there by somebody else, and the journal has a file of that name "
                  "to bring home; move it away and recover again; the journal is kept",
                  place_of(r.file.fs, directory, r.name)));
}

bool is_earlier(struct statx const& there, std::uint64_t born_ns, std::uint64_t crash_ns) {
  if (born_ns == 0) return false;
  std::uint64_t const changed = ns_of(there.stx_ctime);
  if (changed <= crash_ns) return changed < born_ns;
  return (there.stx_mask & STATX_BTIME) != 0 && ns_of(there.stx_btime) < born_ns;
}

/// What has the name of the record's file, if it had it before. 0 or an errno: EEXIST it came
/// later.
int replay::put_aside(record const& r, int directory, int fd) {
  struct statx there = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &there) != 0) return errno;
  if (!is_earlier(there, r.changed_ns, when_.until_ns)) return EEXIST;
  return rename_aside(r, directory, there.stx_ino);
}

/// 0 or an errno.
int replay::rename_aside(record const& r, int directory, std::uint64_t inode) {
  std::string const name = move_aside(directory, r.name, inode);
  if (name.empty()) return errno;
  done_.aside.push_back(place_of(r.file.fs, directory, name));
  return 0;
}

/// Whether an earlier attempt gave it there, and this one not yet. The directory is not listed for
/// that: whoever else may do so can hold its lock.
bool replay::is_left_in_into(std::string const& name) {
  descriptor fd;
  struct stat st = {};
  return !given_in_into_.contains(name) && hands_.look_up(into_, name, fd) == 0 &&
         fstat(fd.get(), &st) == 0 && is_of_attempt(fd.get(), st);
}

/// 0 or an errno. Among files from elsewhere its name gets a number, if one has it, and is cut
/// where that has no room.
int replay::name_it(record const& r, int fd, int directory, std::string& given) {
  int error = hands_.link(fd, directory, given = r.name);
  for (int i = 2; error == EEXIST && directory == into_;) {
    if (is_left_in_into(given)) {
      if (int const kept = hands_.unlink(into_, given); kept != 0) return kept;
    } else {
      std::string const number = fmt::format(".{}", i++);
      given = r.name.substr(0, NAME_MAX - number.size()) + number;
    }
    error = hands_.link(fd, directory, given);
  }
  if (error == 0 && directory == into_) given_in_into_.insert(given);
  return error;
}

/// The new file, marked and then linked, or -errno: ENOENT the directory is no more, EEXIST a later
/// file has the name.
int replay::make_file(record const& r, int directory, std::string& given) {
  int const taken = directory == into_ ? 0 : clear_name(r, directory);
  if (taken != 0) return -taken;
  descriptor file(openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return -errno;
  int error = home_.set_mark(file.get(), mark_, hands_);
  if (error == 0) error = give(r, file.get(), r.mode & 07777 & ~special);
  // Another user may take the name and give it up, again and again.
  for (int tries = 0; error == 0 && (error = name_it(r, file.get(), directory, given)) == EEXIST;
       ++tries)
    error = tries < name_tries ? clear_name(r, directory) : refuse_name(r, directory);
  return error == 0 ? file.release() : -error;
}

/// Of a file that is there, but not yet as its first sync made it durable: before its bytes are
/// brought home nobody may read them whom its mode keeps out.
void replay::bring_owner(record const& r, int fd) {
  struct stat st = {};
  file_records const* const known = live_.of(r.file);
  if (fstat(fd, &st) != 0) fail(r, fd, errno);
  bool const is_behind = known != nullptr && known->made_ns != 0 && S_ISREG(st.st_mode) &&
                         changed_ns(st) <= known->made_ns;
  constexpr mode_t plain = 07777 & ~special;
  bool const is_owned = st.st_uid == r.uid && st.st_gid == r.gid;
  if (!is_behind || (is_owned && (st.st_mode & plain) == (r.mode & plain))) return;
  if (int const error = give(r, fd, r.mode & plain); error != 0) {
    if (!leave_aside(r.file, fd, users_doing(error))) fail(r, fd, error);
    return;
  }
  if (given_.contains(r.file)) done_.regrouped.push_back(home_.place_of(r.file.fs, fd));
}

void replay::make(record const& r) {
  int const there = open_file(r.file);
  if (there >= 0) return bring_owner(r, there);
  if (there != -ESTALE) {
    if (!leave_aside(r.file, -1, users_doing(-there))) fail(r, -1, -there);
    return;
  }
  int directory = open_directory(r.directory);
  std::string given = r.name;
  int fd = directory < 0 ? directory : make_file(r, directory, given);
  bool const is_homeless = fd == -ESTALE || fd == -ENOENT;
  if (is_homeless && into_ >= 0) fd = make_file(r, directory = into_, given);
  if (fd == -ESTALE || fd == -ENOENT) {
    if (live_.of(r.file)->is_removed)
      ++done_.gone;
    else if (!leave_lost(r, "the directory that it was in is no more"))
      throw sluice_error(
          fmt::format("{}: the directory that it was in is no more; bring such files to another "
                      "one with --into DIR, or keep them in a journal of their own with "
                      "--set-aside; the journal is kept",
                      r.name));
    return;
  }
  if (fd == -EEXIST) {
    if (!aside_.contains(r.file)) ++done_.ahead;
    return;
  }
  if (fd < 0 && leave_lost(r, users_doing_there(-fd))) return;
  if (fd < 0) fail(r, directory, -fd);
  file_id now;
  if (int const error = identify(fd, now); error != 0) fail(r, fd, error);
  struct stat st = {};
  if (fstat(fd, &st) != 0) fail(r, fd, errno);
  made_[r.file] = {now, r.directory, directory == into_, r.name, given, changed_ns(st)};
  remember(r.file, fd);
  ++done_.made;
  if (given_.contains(r.file)) done_.regrouped.push_back(place_of(r.file.fs, directory, r.name));
}

void replay::apply(std::uint64_t lsn, record const& r) {
  if (!live_.counts(lsn, r)) return;
  if (r.what == kind::unlink) return remove(r);
  if (aside_.contains(r.file)) return;
  ++done_.records;
  if (r.what == kind::create) return make(r);
  int const fd = open_file(r.file);
  if (fd >= 0) return put(r, fd);
  if (fd == -ESTALE)  // it was removed later, and that was durable
    ++done_.gone;
  else if (!leave_aside(r.file, -1, users_doing(-fd)))
    fail(r, -1, -fd);
}

void replay::remove(record const& r) {
  bool const is_live = live_.is_live(r.file);
  if (aside_.contains(r.file) && !is_live) return;  // its names are kept with it
  if (is_live && live_.of(r.file)->is_changed) {
    done_.kept_names.push_back(fmt::format("{}: it was removed before, and changed since", r.name));
    return;
  }
  ++done_.records;
  file_id const* const now = name_now(r.file);
  int const fd = now != nullptr ? home_.open(*now, O_PATH) : -ESTALE;
  descriptor const closes(fd);
  int const error = fd >= 0 ? remove_name(r, fd) : -fd;
  if (error == ESTALE)
    ++done_.gone;
  else if (error != 0 && error != ENOENT)
    leave_name(r, fd, error);
}

/// 0 or an errno: ENOENT another file has the name by now, or none.
int replay::remove_name(record const& r, int fd) {
  int const directory = open_directory(r.directory);
  if (directory == -ESTALE) return 0;
  if (directory < 0) return -directory;
  if (int const error = look_for(directory, r.name, fd); error != 0) return error;
  return hands_.unlink(directory, r.name);
}

void replay::forget_marks() {
  for (auto const& [id, one] : made_) {
    int const fd = open_file(id);
    if (fd >= 0) home_.set_mark(fd, {}, hands_);
  }
}

}  // namespace sluice::journal
