// SPDX-License-Identifier: Apache-2.0
// Who else changed a file? Whatever the journal's own programs changed was changed before the
// crash, and a live journal commits at least once in its window, so a ctime later than the last
// commit and the window is somebody else's: of after the crash, or of a program without sluice.
// Recovery itself changes files too: own_times.h. And so does ext4 when it is mounted:
// mount_time.h.
#include "journal/recover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/order_area.h"
#include "base/believed_place.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/kept_aside.h"
#include "journal/mark.h"
#include "journal/scan.h"
#include "journal/slots.h"
#include "journal/writer.h"

namespace sluice::journal {

namespace {

/// Nobody else takes away what is brought there.
bool is_ours_alone(int directory) {
  struct stat st = {};
  return fstat(directory, &st) == 0 && st.st_uid == geteuid() &&
         (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Whom a directory's lock keeps out, who opens it by handle, and of no other file: opener.cc.
int looks(file_records const& file) {
  return O_RDONLY | O_NONBLOCK | O_NOCTTY | (file.is_directory ? O_DIRECTORY : 0);
}

class recovery {
 public:
  explicit recovery(recover_options const& o)
      : options_(o),
        disk_(o.log, o.dry_run ? file_disk::use::look : file_disk::use::write),
        home_(o.files != nullptr ? o.files : &own_home_),
        hands_([this](pid_t but) { return home_->left_hands(but); }, o.patience) {}

  recovered run() {
    check_owner();
    slots_found const found = read_slots(disk_);
    if (found.what != slots_found::good)
      throw sluice_error(fmt::format("{} {}; it is kept as it is", options_.log, found.reason));
    super_ = found.in_force;
    if (options_.home_error != 0 && super_.home_error == 0 && !options_.dry_run)
      say_home_failed(options_.home_error);
    result_.generation = super_.generation;
    result_.head = super_.head;
    result_.home_error = static_cast<int>(super_.home_error);
    result_.is_void = is_void(disk_.descriptor(), super_);
    result_.is_running = !options_.replay && is_this_boot(super_.boot) && result_.home_error == 0;
    read_all();
    if (result_.is_void) {
      if (!options_.dry_run) go_on();
      return result_;
    }
    check_damage();
    check_file_systems();
    if (!options_.into.empty()) open_into();
    look_at_files();
    if (options_.dry_run) return result_;
    if (result_.is_running) {
      sync_home();
      go_on();
      return result_;
    }
    if (result_.records != 0) announce();
    try {
      bring_home();
    } catch (...) {
      end_attempt();
      throw;
    }
    return result_;
  }

 private:
  [[noreturn]] void fail(char const* what, int error) const {
    throw sluice_error(
        fmt::format("{} {}: {}; it is kept as it is", options_.log, what, std::strerror(error)));
  }

  void bring_home() {
    replay work(*home_, hands_, live_, log_text(), crash_);
    if (options_.set_aside) work.leave_aside_what_users_did();
    if (options_.overwrite) work.overwrite();
    if (into_) work.bring_homeless_to(into_.get());
    if (result_.records != 0) write_home(work);
    if (options_.set_aside) keep_what_was_left(work);
    go_on();
    work.forget_marks();
    result_.done = work.done();
  }

  void go_on() {
    if (int const error = continue_log(disk_, super_, result_.end, random_salt()); error != 0)
      fail("cannot be written", error);
    remove_mark(disk_.descriptor());
    for (auto const& [id, file] : live_.files()) {
      int const fd = file.is_marked ? home_->open(id, looks(file)) : -1;
      if (fd < 0) continue;
      hands_.remove_attribute(fd, abi::order_mark_name);  // one that stays is of no generation now
      close(fd);
    }
  }

  void check_damage() {
    if (result_.damaged_before == 0 || options_.partial || options_.dry_run) return;
    throw sluice_error(fmt::format(
        "{}: the disk has lost a part of the journal: of {} bytes from {} on at least one "
        "cannot be read, "
        "and they were acknowledged; the journal and all files are kept as they are. To "
        "bring home what "
        "lies before: --partial",
        options_.log, result_.damaged_before - result_.end, result_.end));
  }

  std::string log_text() const {
    std::array<std::uint8_t, 16> id = {};
    std::copy(std::begin(super_.id), std::end(super_.id), id.begin());
    return fmt::format("{} {}", uuid_text(id), super_.generation);
  }

  /// Every record, decoded; pads are left out.
  template <class Visit>
  scanned each(Visit const& visit) {
    return scan(disk_, super_, [&](record_header const& h, std::span<std::byte const> payload) {
      if (is_filler(kind(h.kind))) return true;
      auto const r = decode(kind(h.kind), payload);
      if (!r)
        throw sluice_error(
            fmt::format("{}: the record at {} (kind {}) is none that this program knows; use the "
                        "sluice that wrote the journal; it is kept as it is",
                        options_.log, h.lsn, h.kind));
      visit(h.lsn, *r);
      return true;
    });
  }

  void read_all() {
    scanned const s = each([&](std::uint64_t lsn, record const& r) {
      live_.add(lsn, r);
      ++result_.records;
    });
    if (s.error != 0) fail("cannot be read", s.error);
    live_.close();
    result_.end = s.end;
    result_.damaged_before = s.damaged_before;
    result_.files = live_.files().size();
    super_.ours.end(realtime_ns());
    crash_ = {s.written_ns_max + super_.window_ns, super_.ours};
  }

  void check_file_systems() {
    home_->keep_only(live_.file_systems());
    for (auto const& fs : live_.file_systems()) {
      file_id nobody;
      nobody.fs = fs;
      nobody.handle = "?";
      int const error = -home_->open(nobody, O_PATH);
      if (error == ENODEV)
        throw sluice_error(fmt::format(
            "{}: the file system with uuid {} is not mounted for writing, or something is "
            "mounted over it, or a user may have mounted it (\"user\" in /etc/fstab); mount it "
            "and recover again",
            options_.log, uuid_text(fs)));
      if (error == ENOTUNIQ)
        throw sluice_error(
            fmt::format("{}: two mounted file systems have the uuid {}; unmount the "
                        "one that is a copy",
                        options_.log, uuid_text(fs)));
      if (error == EPERM && !result_.is_running)
        throw sluice_error("opening files by handle needs root (CAP_DAC_READ_SEARCH)");
    }
  }

  void open_into() {
    if (auto const why = why_not_believed(options_.into))
      throw sluice_error(fmt::format("{}: {}", options_.into, *why));
    into_ = descriptor(open(options_.into.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    file_id place;
    int const error = !into_ ? errno : identify(into_.get(), place);
    if (error != 0) throw sluice_error(fmt::format("{}: {}", options_.into, std::strerror(error)));
    if (auto const why = why_not_believed(into_.get()))  // something may have been mounted since
      throw sluice_error(fmt::format("{}: {}", options_.into, *why));
    if (!is_ours_alone(into_.get()))
      throw sluice_error(fmt::format(
          "{}: others may change it; make a directory there that is yours alone", options_.into));
    if (!live_.file_systems().contains(place.fs))
      throw sluice_error(fmt::format("{}: is on another file system than the files of the journal",
                                     options_.into));
  }

  void look_at_files() {
    for (auto& [id, file] : live_.files())
      if (!look_at(id, file)) break;
    if (options_.dry_run || first_left_.empty() || options_.set_aside) return;
    if (options_.keep_home && result_.foreign.size() == left_) return;
    bool const may_keep = result_.foreign.size() == left_;
    throw sluice_error(fmt::format(
        "{}: {}{}; nothing was written. {}To recover the rest, and keep what the journal has of "
        "such files in a journal of its own: --set-aside",
        options_.log, first_left_, left_ > 1 ? fmt::format(" and {} more", left_ - 1) : "",
        may_keep
            ? "To leave such files as they are and recover the rest: --keep-home. To write what "
              "the journal has over changed ones: --overwrite. "
            : ""));
  }

  /// False: without root nothing more can be said, and the sync has to do.
  bool look_at(file_id const& id, file_records& file) {
    if (file.is_removed && !result_.is_running) file.is_changed = is_changed(id, file);
    int const fd = home_->open(id, looks(file));
    if (fd == -ESTALE) return true;  // lost, or removed: the replay finds out
    if (fd == -EPERM && result_.is_running) return false;
    if (fd == -of_somebody_else) {
      file.is_live = true;  // who wants it hears that again
      if (file.has_content && !result_.is_running) leave_foreign(id, file, given_away_text);
      return true;
    }
    if (fd < 0 && users_doing(-fd) != nullptr) {
      file.is_live = true;
      if (file.has_content && !result_.is_running) leave(id, file, users_doing(-fd));
      return true;
    }
    if (fd < 0) fail("names a file that cannot be opened", -fd);
    descriptor const closes(fd);
    file.is_live = !home_->is_marked(fd, log_text());
    file.is_marked = has_mark(fd, super_);
    int const error = unreadable_marks(fd);
    if (error == EACCES) {
      if (file.has_content && !result_.is_running) leave(id, file, "its owner may not read it");
      return true;
    }
    if (error != 0) fail("names a file whose marks cannot be read", error);
    result_.marked += file.is_marked;
    struct stat st = {};
    if (fstat(fd, &st) != 0) fail("names a file that cannot be looked at", errno);
    if (result_.is_running) check_not_behind(id, file, st, fd);
    if (!file.is_live || file.is_marked || result_.is_running) return true;
    if (!file.has_content) return true;
    if (result_.home_error != 0 && !options_.replay && is_in_use(id, fd))
      leave(id, file, "its disk refused bytes, and it is open to be written");
    else if (is_given_away(file, st))
      leave_foreign(id, file, given_away_text);
    else if (!options_.overwrite && is_foreign(id, file, st))
      leave_foreign(id, file, "changed by somebody else after the journal's last record");
    if (!file.owner) file.owner = {st.st_uid, st.st_gid};
    return true;
  }

  /// What recovery itself wrote to one that was kept aside is in its record's time.
  bool is_foreign(file_id const& id, file_records const& file, struct stat const& st) const {
    return changed_ns(st) > file.changed_ns && is_changed_since(crash_, *home_, id.fs, st);
  }

  /// Its users may keep it from being opened, but not from being looked at.
  bool is_changed(file_id const& id, file_records const& file) const {
    descriptor const at(home_->open(id, O_PATH));
    struct stat st = {};
    return at && fstat(at.get(), &st) == 0 && is_foreign(id, file, st);
  }

  std::string name_of_file(file_id const& id) const {
    descriptor const at(home_->open(id, O_PATH));
    return at ? home_->place_of(id.fs, at.get()) : "a file on " + uuid_text(id.fs);
  }

  void leave(file_id const& id, file_records& file, std::string const& why) {
    ++left_;
    file.is_kept = true;
    aside_[id].why = why;
    result_.aside.push_back({name_of_file(id), why});
    if (first_left_.empty()) first_left_ = fmt::format("{}: {}", why, result_.aside.back().name);
  }

  void leave_foreign(file_id const& id, file_records& file, std::string const& why) {
    leave(id, file, why);
    result_.foreign.push_back(result_.aside.back().name);
  }

  /// Whoever can write the journal says what its recovery writes. So that is done with his rights.
  void check_owner() const {
    if (disk_.owner() == geteuid()) return;
    throw sluice_error(fmt::format(
        "{}: belongs to uid {}, and so must what recovers it; `sluice recover`, run by root, takes "
        "that user's rights",
        options_.log, disk_.owner()));
  }

  /// What a running program has written since would be mixed with what the journal has.
  bool is_in_use(file_id const& id, int fd) const {
    if (options_.dry_run) return false;
    // Who wants to write it in between breaks our lease, which would be the end of us.
    signal(SIGIO, SIG_IGN);
    int const refused = fcntl(fd, F_SETLEASE, F_RDLCK) == 0 ? 0 : errno;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    if (refused == EACCES)
      throw sluice_error(
          fmt::format("{}: whether {} is in use cannot be told without CAP_LEASE; run as root",
                      options_.log, home_->place_of(id.fs, fd)));
    return refused == EAGAIN;
  }

  void check_not_behind(file_id const& id, file_records const& file, struct stat const& st,
                        int fd) const {
    if (!file.has_content || changed_ns(st) >= file.changed_ns) return;
    throw sluice_error(
        fmt::format("{}: {} is older than the journal, and yet this machine has not been "
                    "restarted: its disk lost "
                    "power, or it was restored. Stop the programs that have it open, and use "
                    "--replay; the journal "
                    "is kept",
                    options_.log, home_->place_of(id.fs, fd)));
  }

  void write_super() {
    if (int const error = write_slot(disk_, super_); error != 0) fail("cannot be written", error);
  }

  /// From now on changes of home files are ours. What was asked to be replayed is so by whoever
  /// ends this: that the machine runs since proves nothing of its disk.
  void announce() {
    if (options_.replay) std::fill(std::begin(super_.boot), std::end(super_.boot), std::uint8_t{0});
    crash_.begun_ns = coarse_ns();
    super_.ours.begin(crash_.begun_ns);
    write_super();
    if (options_.on_write) options_.on_write();
  }

  void renew() {
    if (!super_.ours.want_renewal(realtime_ns())) return;
    super_.ours.renew(realtime_ns());
    write_super();
  }

  /// It failed: what changes from now on is not ours. If that cannot be said, the span ends soon.
  void end_attempt() {
    super_.ours.close(realtime_ns());
    write_slot(disk_, super_);
  }

  void write_home(replay& work) {
    if (super_.home_error != 0) hear_old_errors();
    scanned const s = each([&](std::uint64_t lsn, record const& r) {
      renew();
      if (options_.is_to_end && options_.is_to_end())
        throw sluice_error(options_.log + ": told to end before all was brought home; it is kept");
      work.apply(lsn, r);
      if (options_.progress) options_.progress(lsn - super_.head, result_.end - super_.head);
    });
    if (s.error != 0) fail("cannot be read", s.error);
    if (s.end != result_.end) fail("reads otherwise than a moment ago", EIO);
    if (int const error = work.flush(); error != 0) {
      say_home_failed(error);
      if (!work.stale().empty())
        throw sluice_error(fmt::format(
            "{}: the kernel has pages of {} from before an error of its disk, which would be lost; "
            "unmount its file system and mount it again, or restart the machine, then recover "
            "again; the journal is kept",
            options_.log, work.stale()));
      throw sluice_error(
          fmt::format("{}: what was brought home cannot be written: {}; the journal is "
                      "kept",
                      options_.log, std::strerror(error)));
    }
    sync_home();
  }

  /// What counts of the files that stay as they are, in a journal of its own.
  void keep_what_was_left(replay const& work) {
    for (auto const& [id, one] : work.aside()) {
      ++left_;
      result_.aside.push_back({one.name.empty() ? name_of_file(id) : one.name, one.why});
      aside_[id] = one;
    }
    superblock of = super_;
    of.ours = crash_.earlier;
    kept_log const kept = {options_.log, disk_.owner(), of, crash_.until_ns - super_.window_ns};
    if (aside_.empty()) return remove_kept_of_attempt(kept);
    result_.aside_log = keep_aside(kept, [&](take_record const& take) {
      scanned const s = each([&](std::uint64_t lsn, record r) {
        auto const at = aside_.find(r.file);
        if (at == aside_.end() || lsn < live_.of(r.file)->safe_below) return;
        bool const is_content = r.what == kind::data || r.what == kind::truncate;
        if (is_content && at->second.changed_ns != 0) r.changed_ns = at->second.changed_ns;
        bool const is_name = r.what == kind::create || r.what == kind::unlink;
        if (is_content || r.what == kind::owner || (is_name && at->second.is_lost)) take(r);
      });
      if (s.error != 0) fail("cannot be read", s.error);
    });
  }

  /// Of a file system the kernel tells an error to who asks next, whoever's file it was: not from
  /// before all of it is written anew.
  void hear_old_errors() const {
    for (auto const& fs : live_.file_systems()) home_->sync(fs);
  }

  /// The kernel tells it once; the next attempt must know.
  void say_home_failed(int error) {
    super_.home_error = static_cast<std::uint64_t>(error);
    if (int const failed = write_slot(disk_, super_); failed != 0)
      fail("cannot be written", failed);
  }

  void sync_home() {
    for (auto const& fs : live_.file_systems()) {
      int const error = home_->sync(fs);
      if (error == 0) continue;
      say_home_failed(error);
      throw sluice_error(
          fmt::format("{}: the file system {} cannot be synced: {}; the journal is kept",
                      options_.log, uuid_text(fs), std::strerror(error)));
    }
  }

  recover_options const& options_;
  file_disk disk_;
  mounted_home own_home_;
  home* home_;
  hands hands_;
  superblock super_ = {};
  live_records live_;
  recovered result_;
  std::map<file_id, left_aside> aside_;
  std::size_t left_ = 0;    // of those, with others that are an error
  std::string first_left_;  // for people
  crash_time crash_;
  descriptor into_;
};

}  // namespace

recovered recover(recover_options const& options) { return recovery(options).run(); }

}  // namespace sluice::journal
