// SPDX-License-Identifier: Apache-2.0
// sluice-order: the daemon of one journal. `sluice run --order` starts one for its job; with --jobs
// it serves every job of a run directory. On SIGTERM it brings everything home and leaves the
// journal empty.
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
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/old_option.h"
#include "base/program.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/kept_aside.h"
#include "journal/recover.h"
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
// Longer than a lone sync goes unasked: a database that is busy is not forgotten.
constexpr std::uint64_t rests_after_ns = 30'000'000'000;
constexpr rlim_t files_wanted = 16384;
// What is written before the first request is answered; the journal grows when it is used a lot.
constexpr std::uint64_t log_mib_at_first = 64;

volatile sig_atomic_t is_told_to_stop = 0;

struct serve_options {
  std::string log, jobs;
  std::vector<std::string> areas;
  std::uint64_t log_mib = 256;
  int ready_fd = -1;
  std::vector<int> sentinel_fds = {-1, -1};
};

void heed_signals() {
  struct sigaction act = {};
  act.sa_handler = [](int) { is_told_to_stop = 1; };
  for (int signal : {SIGTERM, SIGINT}) sigaction(signal, &act, nullptr);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

/// Who waits for us is to wait for a disk, and not for a processor. Where it is not allowed, not.
void want_priority() { setpriority(PRIO_PROCESS, 0, -10); }

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

/// What programs were told by the kernel while nobody was there to write it into the journal. Not
/// asked of the jobs of many users: one of them could have everybody's files replayed.
int refused_before(std::vector<std::string> const& areas) {
  for (auto const& path : areas)
    if (auto const error = area(path).memory().head.refused.load(); error != 0)
      return static_cast<int>(error);
  return 0;
}

/// Two daemons would answer in each other's place. False: there is no such directory yet.
bool hold_jobs(std::string const& jobs, descriptor& held) {
  if (held) return true;
  descriptor fd(open(jobs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return false;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    throw sluice_error(fmt::format("{}: another journal daemon serves these jobs", jobs));
  held = std::move(fd);
  return true;
}

/// Areas of jobs that came since, and none of those that went. One that is not good is left out.
void follow_jobs(service& s, std::string const& jobs, descriptor& held) {
  if (!hold_jobs(jobs, held)) return;
  std::vector<std::string> there;
  std::error_code ignored;
  for (auto const& job : std::filesystem::directory_iterator(jobs, ignored)) {
    std::string const path = job.path() / "order";
    if (access(path.c_str(), F_OK) == 0) there.push_back(path);
  }
  auto const served = s.areas();
  for (auto const& path : served)
    if (std::find(there.begin(), there.end(), path) == there.end()) s.remove(path);
  for (auto const& path : there) {
    if (std::find(served.begin(), served.end(), path) != served.end()) continue;
    try {
      s.add(std::make_unique<area>(path));
    } catch (sluice::error const&) {
      // Half made, or of another version: its job goes without us.
    }
  }
}

void say_what_failed(serve_options const& o, int error) {
  char const* const why = error == ENOENT ? "it was removed" : std::strerror(error);
  fmt::print(stderr, "sluice-order: {}: {}: fsync is native for all files that it does not hold\n",
             o.log, why);
}

void say_what_was_set_aside(std::string const& log, recovered const& r) {
  constexpr std::size_t lines_max = 10;
  for (std::size_t i = 0; i < r.aside.size() && i < lines_max; ++i)
    fmt::print(stderr, "sluice-order: {}: not brought home: {}: {}\n", log, r.aside[i].why,
               r.aside[i].name);
  if (!r.aside_log.empty())
    fmt::print(stderr,
               "sluice-order: {}: {} files are as they were; what it had of them is in {}\n", log,
               r.aside.size(), r.aside_log);
}

log_place place_of(file_disk const& disk, std::string const& log) {
  struct stat st = {};
  if (fstat(disk.descriptor(), &st) != 0) return {};
  return {std::filesystem::absolute(log), device_word(st), st.st_ino};
}

/// For `sluice order`: beside the first area, or the directory of jobs. Without it all goes on.
class status {
 public:
  explicit status(serve_options const& o)
      : path_(folder_of(o.jobs.empty() ? o.areas[0] : o.jobs) / "order-status"),
        log_(std::filesystem::absolute(o.log)) {
    begin();
  }

  void tell(service const& s) {
    if (monotonic_ns() - told_ns_ < tell_every_ns) return;
    told_ns_ = monotonic_ns();
    if (!file_) begin();
    if (file_) s.publish(file_->memory());
  }

  void recovered() {
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
    file_->memory().heart_ns = monotonic_ns();
    file_->memory().kept_logs = kept_beside(log_);
  }

  std::filesystem::path path_;
  std::string log_;
  std::unique_ptr<status_file> file_;
  std::uint64_t told_ns_ = 0;
};

/// As recover() does on a machine that runs since: the files are ahead of the journal.
bool only_syncs(std::string const& log) {
  file_disk disk(log, file_disk::use::look);
  slots_found const found = read_slots(disk);
  return found.what == slots_found::good && found.in_force.home_error == 0 &&
         is_this_boot(found.in_force.boot);
}

recovered recover_or_say(recover_options const& o, status& said) {
  try {
    return recover(o);
  } catch (error const&) {
    said.refused();
    throw;
  }
}

/// Until SIGTERM, or until programs have gone without us in a way that only a new generation of the
/// journal ends. 0: all is at home.
int serve_generation(file_disk& disk, serve_options const& o, descriptor& jobs, status& said,
                     sentinels& sentinel, int& ready_fd) {
  superblock const super = begin(disk);
  service s(disk, super);
  s.on_hold([&sentinel](int fd, struct stat const& st) { sentinel.keep(fd, st); });
  s.on_let_go([&sentinel] { sentinel.forget(); });
  s.rests_after(rests_after_ns);
  s.log_is_at(place_of(disk, o.log));
  s.log_grows_to(o.log_mib << 20);
  for (auto const& path : o.areas) s.add(std::make_unique<area>(path));
  if (!o.jobs.empty()) follow_jobs(s, o.jobs, jobs);
  if (ready_fd >= 0) {
    if (write(ready_fd, "1", 1) != 1) return exit_sluice;
    close(ready_fd);
    ready_fd = -1;
  }
  std::uint64_t looked_ns = monotonic_ns();
  bool is_failing = false;
  while (is_told_to_stop == 0 && !s.wants_anew()) {
    s.turn();
    said.tell(s);
    if (s.failed() != 0 && !std::exchange(is_failing, true)) say_what_failed(o, s.failed());
    if (o.jobs.empty() || monotonic_ns() - looked_ns < jobs_every_ns) continue;
    looked_ns = monotonic_ns();
    follow_jobs(s, o.jobs, jobs);
  }
  if (s.wants_anew()) said.voided();
  std::uint64_t const until = monotonic_ns() + patience_ns;
  while (!s.end()) {
    s.turn();
    said.tell(s);
    if (s.failed() == 0 && monotonic_ns() < until) continue;
    fmt::print(stderr, "sluice-order: {}: cannot be brought home: {}; keep it for sluice recover\n",
               o.log, std::strerror(s.failed() != 0 ? s.failed() : ETIMEDOUT));
    return exit_sluice;
  }
  return 0;
}

int serve(serve_options const& o) {
  install_guard();
  heed_signals();
  want_files();
  want_priority();
  descriptor jobs;
  if (!o.jobs.empty()) hold_jobs(o.jobs, jobs);
  status said(o);
  if (access(o.log.c_str(), F_OK) != 0)
    make_log_file(o.log, std::min(o.log_mib, log_mib_at_first) << 20, window_ns);
  recover_options before;
  before.log = o.log;
  before.set_aside = !o.jobs.empty();  // no user keeps the files of the others from coming home
  sentinels sentinel(o.sentinel_fds[0], o.sentinel_fds[1]);
  before.home_error = refused_before(o.areas);
  if (int const heard = sentinel.heard(); before.home_error == 0) before.home_error = heard;
  if (before.home_error == 0 && only_syncs(o.log)) said.only_syncs();
  recovered const r = recover_or_say(before, said);
  if (r.records != 0)
    fmt::print(stderr, "sluice-order: {}: {} records {}\n", o.log, r.records,
               r.is_running ? "were synced at home" : "brought home");
  say_what_was_set_aside(o.log, r);
  said.recovered();
  file_disk disk(o.log, file_disk::use::write);
  if (disk.owner() != geteuid())
    throw sluice_error(fmt::format("{}: belongs to uid {}, who could write it while it is served",
                                   o.log, disk.owner()));
  int ready_fd = o.ready_fd;
  while (is_told_to_stop == 0)
    if (int const how = serve_generation(disk, o, jobs, said, sentinel, ready_fd); how != 0) {
      // What the journal says of itself nobody has to hear again.
      if (read_slots(disk).in_force.home_error != 0) sentinel.forget();
      return how;
    }
  sentinel.forget();
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Keeps the journal of durable fsync. Started by sluice run --order, or by hand with --jobs."};
  app.name("sluice-order");
  app.require_subcommand(1);
  serve_options o;
  CLI::App* const verb = app.add_subcommand("serve", "serve areas until SIGTERM");
  verb->add_option("--area", o.areas, "the file `order` of a job; may be given more than once");
  verb->add_option("--jobs", o.jobs, "serve every job below this directory, as they come and go");
  verb->add_option("--journal", o.log, "the journal; made when there is none");
  verb->add_option("--journal-mib", o.log_mib, "how large the journal may become");
  add_old_option(*verb, "sluice-order", "--log", "--journal", o.log);
  add_old_option(*verb, "sluice-order", "--log-mib", "--journal-mib", o.log_mib);
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
  return serve(o);
}

}  // namespace

}  // namespace sluice::journal

int main(int argc, char** argv) {
  return sluice::guarded("sluice-order", [&] { return sluice::journal::run(argc, argv); });
}
