// SPDX-License-Identifier: Apache-2.0
// sluice-order: the daemon of one user's journal. `sluice run --order` starts one for its job; with
// --jobs it serves every job of that user in a run directory. On SIGTERM it brings everything home
// and leaves the journal empty.
// What stays true: with --user it opens as root where it serves from, becomes that user, and from
// then on has his rights alone, but for the opener that its recovery asks.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/old_option.h"
#include "base/on_stderr.h"
#include "base/open_file.h"
#include "base/printable.h"
#include "base/program.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/kept_aside.h"
#include "journal/opener.h"
#include "journal/recover.h"
#include "journal/recovery_bounds.h"
#include "journal/sentinel.h"
#include "journal/service.h"
#include "journal/slots.h"
#include "journal/told.h"
#include "journal/writer.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t window_ns =
    10'000'000'000;  // ten times what a live journal takes to commit
constexpr std::uint64_t jobs_every_ns = 100'000'000, tell_every_ns = 100'000'000;
constexpr std::uint64_t patience_ns = 60'000'000'000;
constexpr std::uint64_t rests_after_ns = 30'000'000'000;
constexpr rlim_t files_wanted = 16384;

volatile sig_atomic_t is_told_to_stop = 0;
volatile sig_atomic_t may_end_at_once = 0;

constexpr char const* cut_off_text =
    "told to end before what the journal has was brought home; it is kept";

struct serve_options {
  std::string log, jobs, status;
  std::vector<std::string> areas;
  std::uint64_t log_mib = 64;
  std::int64_t user = -1, group = -1;  // whose jobs and journal; -1: ours
  bool only_recovers = false, is_removed = false, is_bounded = false;
  int ready_fd = -1;
  std::vector<int> sentinel_fds = {-1, -1};
};

/// In any thread, and at any moment.
void take_signal(int) {
  is_told_to_stop = 1;
  if (may_end_at_once == 0) return;
  for (char const* const words : {"sluice-order: ", cut_off_text, "\n"})
    if (write(STDERR_FILENO, words, std::strlen(words)) < 0) break;
  _exit(exit_sluice);
}

void heed_signals() {
  struct sigaction act = {};
  act.sa_handler = take_signal;
  for (int signal : {SIGTERM, SIGINT}) sigaction(signal, &act, nullptr);
  // SIGXFSZ: a limit of file sizes is told by EFBIG then, like a full file system.
  for (int const ignored : {SIGHUP, SIGPIPE, SIGXFSZ}) signal(ignored, SIG_IGN);
}

/// Who waits for us is to wait for a disk, and not for a processor. Who only recovers takes what a
/// journal's user gave him to do. Where it is not allowed, not.
void want_priority(serve_options const& o) {
  setpriority(PRIO_PROCESS, 0, o.only_recovers ? 5 : -10);
}

void want_files() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, files_wanted));
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  // Their table grows now: with more than one thread the kernel would have the loop wait, some
  // milliseconds each time.
  auto const last = static_cast<int>(std::min(limit.rlim_cur, files_wanted)) - 1;
  close(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, last));
}

/// The journal, empty, in a new generation of this boot.
superblock begin(disk& d) {
  slots_found const found = read_slots(d);
  if (found.what != slots_found::good) throw sluice_error("the journal " + found.reason);
  superblock s = found.in_force;
  auto const boot = boot_id();
  if (int const error = continue_log(d, s, s.head, random_salt(), {}, boot); error != 0)
    throw sluice_error(fmt::format("the journal cannot be written: {}", std::strerror(error)));
  return s;
}

/// What programs were told by the kernel while nobody was there to write it into the journal.
int refused_before(std::vector<std::string> const& areas, uid_t user) {
  for (auto const& path : areas) try {
      if (auto const error = area(path, user).memory().head.refused.load(); error != 0)
        return static_cast<int>(error);
    } catch (sluice::error const&) {
      // Half made, or of another version: it says nothing.
    }
  return 0;
}

/// Two daemons would answer in each other's place. The keeper removes a lock that nobody holds.
descriptor hold_jobs(serve_options const& o) {
  if (o.jobs.empty() || o.status.empty()) return {};
  std::string const path = o.status + ".lock";
  for (;;) {
    descriptor held(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!held)
      throw sluice_error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    if (flock(held.get(), LOCK_EX | LOCK_NB) != 0)
      throw error(exit_busy, fmt::format("{}: another journal daemon serves these jobs", o.jobs));
    struct stat mine = {}, there = {};
    bool const is_it = fstat(held.get(), &mine) == 0 && lstat(path.c_str(), &there) == 0 &&
                       is_same_file(mine, there);
    if (is_it) return held;
  }
}

/// The areas of one user's jobs below a directory. He may not list it, so it is opened before his
/// rights are taken; what lies in it is opened with them.
class his_jobs {
 public:
  his_jobs(std::string path, uid_t user) : path_(std::move(path)), user_(user) { find(); }

  std::vector<std::string> areas() {
    std::vector<std::string> out;
    if (!find()) return out;
    rewinddir(all_.get());
    while (dirent const* const one = readdir(all_.get())) {
      std::string const path = path_ + "/" + one->d_name + "/order";
      if (is_his(one->d_name) && access(path.c_str(), F_OK) == 0) out.push_back(path);
    }
    return out;
  }

  /// Areas of jobs that came since, and none of those that went. One that is not good is left out.
  void follow(service& s) {
    if (path_.empty()) return;
    auto const there = areas(), served = s.areas();
    for (auto const& path : served)
      if (std::find(there.begin(), there.end(), path) == there.end()) s.remove(path);
    for (auto const& path : there) {
      if (std::find(served.begin(), served.end(), path) != served.end()) continue;
      try {
        s.add(std::make_unique<area>(path, user_));
      } catch (sluice::error const&) {
        // Half made, or of another version: its job goes without us.
      }
    }
  }

 private:
  struct closes {
    void operator()(DIR* d) const { closedir(d); }
  };

  /// False: there is no such directory yet.
  bool find() {
    if (all_ || path_.empty()) return all_ != nullptr;
    all_.reset(opendir(path_.c_str()));
    struct stat st = {};
    if (all_ && fstat(dirfd(all_.get()), &st) == 0) owner_ = st.st_uid;
    return all_ != nullptr;
  }

  /// Folders of others than the daemon's own user are called UID@NAME.
  bool is_his(std::string_view folder) const {
    if (user_ == owner_) return folder.find('@') == folder.npos && !folder.starts_with('.');
    return folder.starts_with(fmt::format("{}@", user_));
  }

  std::string path_;
  uid_t user_, owner_ = 0;
  std::unique_ptr<DIR, closes> all_;
};

void say_what_failed(serve_options const& o, int error) {
  char const* const why = error == ENOENT ? "it was removed" : std::strerror(error);
  on_stderr("sluice-order: {}: {}: fsync is native for all files that it does not hold\n", o.log,
            why);
}

void say_what_was_set_aside(std::string const& log, recovered const& r) {
  constexpr std::size_t lines_max = 10;
  for (std::size_t i = 0; i < r.aside.size() && i < lines_max; ++i)
    on_stderr("sluice-order: {}: not brought home: {}: {}\n", log, r.aside[i].why,
              printable(r.aside[i].name));
  for (std::size_t i = 0; i < r.done.kept_names.size() && i < lines_max; ++i)
    on_stderr("sluice-order: {}: left as it is: {}\n", log, printable(r.done.kept_names[i]));
  for (std::size_t i = 0; i < r.done.regrouped.size() && i < lines_max; ++i)
    on_stderr("sluice-order: {}: brought home without its group: {}\n", log,
              printable(r.done.regrouped[i]));
  if (!r.aside_log.empty())
    on_stderr("sluice-order: {}: {} files are as they were; what it had of them is in {}\n", log,
              r.aside.size(), r.aside_log);
}

log_place place_of(file_disk const& disk, std::string const& log) {
  struct stat st = {};
  if (fstat(disk.descriptor(), &st) != 0) return {};
  return {std::filesystem::absolute(log), device_word(st), st.st_ino};
}

/// For `sluice order`: where it is told to, or beside the first area, or the directory of jobs.
/// Without it all goes on.
class status {
 public:
  explicit status(serve_options const& o)
      : path_(!o.status.empty() ? std::filesystem::path(o.status)
                                : folder_of(o.jobs.empty() ? o.areas[0] : o.jobs) / "order-status"),
        log_(std::filesystem::absolute(o.log)) {
    begin();
  }

  void tell(service const& s) {
    if (steady_count_ns() - told_ns_ < tell_every_ns) return;
    told_ns_ = steady_count_ns();
    if (!file_) begin();
    if (file_) s.publish(file_->memory());
  }

  void recovered() {
    is_recovered_ = true;
    if (file_) file_->memory().kept_logs = kept_beside(log_);
  }

  void only_syncs() {
    if (file_) file_->memory().only_syncs = 1;
  }

  /// Who would let programs use the files looks here.
  void refused() {
    if (!file_) return;
    file_->memory().refused = 1;
    file_->stay();
  }

  void voided() {
    if (file_) ++file_->memory().voids;
  }

 private:
  static std::filesystem::path folder_of(std::string const& path) {
    auto const all = std::filesystem::absolute(path);
    return (all.has_filename() ? all : all.parent_path()).parent_path();
  }

  /// The directory may come later.
  void begin() {
    try {
      if (access(path_.parent_path().c_str(), W_OK) == 0)
        file_ = std::make_unique<status_file>(path_, log_);
    } catch (error const&) {
      // A full disk: what cannot be told is done all the same.
    }
    if (!file_) return;
    file_->memory().heart_ns = steady_count_ns();
    if (is_recovered_) file_->memory().kept_logs = kept_beside(log_);
  }

  std::filesystem::path path_;
  std::string log_;
  std::unique_ptr<status_file> file_;
  std::uint64_t told_ns_ = 0;
  bool is_recovered_ = false;  // until then nobody looks beside the journal: that is a user's place
};

/// As recover() does on a machine that runs since: the files are ahead of the journal.
bool only_syncs(std::string const& log) {
  file_disk disk(log, file_disk::use::look);
  slots_found const found = read_slots(disk);
  return found.what == slots_found::good && found.in_force.home_error == 0 &&
         is_this_boot(found.in_force.boot);
}

/// A recovery that is cut off before it writes is begun again by the next process: nobody who ends
/// a node waits for what a user left in his journal.
class ends_at_once {
 public:
  ends_at_once() {
    may_end_at_once = 1;
    if (is_told_to_stop == 0) return;
    may_end_at_once = 0;
    throw sluice_error(cut_off_text);
  }
  ~ends_at_once() { may_end_at_once = 0; }
  ends_at_once(ends_at_once const&) = delete;
  ends_at_once& operator=(ends_at_once const&) = delete;
};

recovered recover_bounded(recover_options const& o, std::uint64_t mib) try {
  ends_at_once const now;
  return recover(o);
} catch (std::bad_alloc const&) {
  throw sluice_error(fmt::format(
      "{}: its recovery needs more memory than one of a journal of {} MiB gets here ({} MiB); it "
      "is kept; `sluice recover`, run by root, has no such bound",
      o.log, mib, recovery_memory_bytes(mib << 20) >> 20));
}

/// What the journal has is in the files. Throws.
void bring_home(serve_options const& o, his_jobs& jobs, home* files, status& said,
                sentinels& sentinel) {
  recover_options before;
  before.log = o.log;
  before.files = files;
  before.set_aside = !o.jobs.empty();  // what he does to one file keeps no other from coming home
  before.home_error = refused_before(o.jobs.empty() ? o.areas : jobs.areas(), geteuid());
  if (int const heard = sentinel.heard(); before.home_error == 0) before.home_error = heard;
  if (before.home_error == 0 && only_syncs(o.log)) said.only_syncs();
  // One that is cut off in a long call would not know what it changed after that.
  before.on_write = [] { may_end_at_once = 0; };
  before.is_to_end = [] { return is_told_to_stop != 0; };
  recovered const r = o.is_bounded ? recover_bounded(before, o.log_mib) : recover(before);
  if (r.records != 0)
    on_stderr("sluice-order: {}: {} records {}\n", o.log, r.is_running ? r.records : r.done.records,
              r.is_running ? "were synced at home" : "brought home");
  say_what_was_set_aside(o.log, r);
  said.recovered();
}

/// Until SIGTERM, or until programs have gone without us in a way that only a new generation of the
/// journal ends. 0: all is at home.
int serve_generation(file_disk& disk, serve_options const& o, his_jobs& jobs, status& said,
                     sentinels& sentinel, int& ready_fd) {
  superblock const super = begin(disk);
  service s(disk, super);
  s.on_hold([&sentinel](int fd, struct stat const& st) { sentinel.keep(fd, st); });
  s.on_let_go([&sentinel] { sentinel.forget(); });
  s.rests_after(rests_after_ns);
  s.log_is_at(place_of(disk, o.log));
  for (auto const& path : o.areas) s.add(std::make_unique<area>(path));
  jobs.follow(s);
  if (ready_fd >= 0) {
    if (write(ready_fd, "1", 1) != 1) return exit_sluice;
    close(ready_fd);
    ready_fd = -1;
  }
  std::uint64_t looked_ns = steady_count_ns();
  bool is_failing = false;
  while (is_told_to_stop == 0 && !s.wants_anew()) {
    s.turn();
    said.tell(s);
    if (s.failed() != 0 && !std::exchange(is_failing, true)) say_what_failed(o, s.failed());
    if (o.jobs.empty() || steady_count_ns() - looked_ns < jobs_every_ns) continue;
    looked_ns = steady_count_ns();
    jobs.follow(s);
  }
  if (s.wants_anew()) said.voided();
  std::uint64_t const until = steady_count_ns() + patience_ns;
  while (!s.end()) {
    s.turn();
    said.tell(s);
    if (s.failed() == 0 && steady_count_ns() < until) continue;
    on_stderr("sluice-order: {}: cannot be brought home: {}; keep it for sluice recover\n", o.log,
              std::strerror(s.failed() != 0 ? s.failed() : ETIMEDOUT));
    return exit_sluice;
  }
  return 0;
}

/// A change of rights takes away that we are told of our starter's end.
std::unique_ptr<home> take_rights(serve_options const& o) {
  auto const user = static_cast<uid_t>(o.user);
  if (o.user < 0 || user == geteuid()) return nullptr;
  pid_t const starter = getppid();
  auto files = become_user(
      user, o.group < 0 ? std::nullopt : std::optional<gid_t>(static_cast<gid_t>(o.group)));
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != starter) is_told_to_stop = 1;
  return files;
}

int serve_until_told(serve_options const& o, his_jobs& jobs, status& said, sentinels& sentinel) {
  file_disk disk(o.log, file_disk::use::write);
  if (disk.owner() != geteuid())
    throw sluice_error(fmt::format("{}: belongs to uid {}, who could write it while it is served",
                                   o.log, disk.owner()));
  int ready_fd = o.ready_fd;
  while (is_told_to_stop == 0 && !o.only_recovers)
    if (int const how = serve_generation(disk, o, jobs, said, sentinel, ready_fd); how != 0) {
      // What the journal says of itself nobody has to hear again.
      if (read_slots(disk).in_force.home_error != 0) sentinel.forget();
      return how;
    }
  sentinel.forget();
  if (o.is_removed && disk.has_name()) unlink(o.log.c_str());  // it is empty
  return 0;
}

/// Throws where that cannot be told.
bool is_there(std::string const& path) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) == 0) return true;
  if (errno == ENOENT) return false;
  throw sluice_error(fmt::format("{}: cannot be looked at: {}", path, std::strerror(errno)));
}

/// False: there is none, and none is to be made.
bool begin_with(serve_options const& o, his_jobs& jobs, std::unique_ptr<status>& said,
                sentinels& sentinel) {
  bool is_new = false;
  try {
    said = std::make_unique<status>(o);
    std::optional<recovery_bounds> bounds;  // of the process that opens files, too
    if (o.is_bounded) bounds.emplace(o.log_mib << 20);
    auto const files = take_rights(o);
    is_new = !is_there(o.log);
    if (is_new && o.only_recovers) return false;
    if (is_new) make_log_file(o.log, o.log_mib << 20, window_ns);
    bring_home(o, jobs, files.get(), *said, sentinel);
    return true;
  } catch (error const& e) {
    if (is_new) throw error(exit_no_journal, e.what());
    if (said) said->refused();
    throw;
  }
}

int serve(serve_options const& o) {
  install_guard();
  heed_signals();
  want_files();
  want_priority(o);
  his_jobs jobs(o.jobs, o.user < 0 ? geteuid() : static_cast<uid_t>(o.user));
  descriptor const lock = hold_jobs(o);
  sentinels sentinel(o.sentinel_fds[0], o.sentinel_fds[1]);
  std::unique_ptr<status> said;
  return begin_with(o, jobs, said, sentinel) ? serve_until_told(o, jobs, *said, sentinel) : 0;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Keeps the journal of durable fsync. Started by sluice run --order, or by hand with --jobs."};
  app.name("sluice-order");
  app.require_subcommand(1);
  serve_options o;
  CLI::App* const verb = app.add_subcommand("serve", "serve areas until SIGTERM");
  verb->add_option("--area", o.areas, "the file `order` of a job; may be given more than once");
  verb->add_option("--jobs", o.jobs,
                   "serve every job of the user below this directory, as they come and go");
  verb->add_option("--user", o.user, "whose jobs and journal; served with that user's rights");
  verb->add_option("--group", o.group, "the first of that user's groups, as processes have it");
  verb->add_option("--status", o.status, "file for the figures of sluice order");
  verb->add_flag("--only-recover", o.only_recovers,
                 "bring home what a journal has, if there is one, and end");
  verb->add_flag("--remove", o.is_removed, "remove the journal at the end, when it is empty");
  verb->add_option("--journal", o.log, "the journal; made when there is none");
  verb->add_option("--journal-mib", o.log_mib, "how large a new journal is");
  add_old_option(*verb, "sluice-order", "--log", "--journal", o.log);
  add_old_option(*verb, "sluice-order", "--log-mib", "--journal-mib", o.log_mib);
  verb->add_flag("--bounded", o.is_bounded,
                 "refuse a journal that is larger, and recover within a bound of memory");
  verb->add_option("--ready-fd", o.ready_fd, "where to write a byte when serving");
  verb->add_option("--sentinel-fds", o.sentinel_fds,
                   "both ends of a pair of sockets that outlives this process")
      ->expected(2);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : (app.exit(e), exit_usage);
  }
  if (o.log.empty()) throw usage_error("--journal FILE says where the journal is");
  if (o.log_mib < 1 || o.log_mib > 65536) throw usage_error("--journal-mib is from 1 to 65536");
  if (o.areas.empty() && o.jobs.empty()) throw usage_error("give --area or --jobs");
  if (o.user < -1 || o.user >= std::numeric_limits<uid_t>::max())
    throw usage_error("--user is the number of a user");
  if (o.group < -1 || o.group >= std::numeric_limits<gid_t>::max())
    throw usage_error("--group is the number of a group");
  return serve(o);
}

}  // namespace

}  // namespace sluice::journal

int main(int argc, char** argv) {
  return sluice::guarded("sluice-order", [&] { return sluice::journal::run(argc, argv); });
}
