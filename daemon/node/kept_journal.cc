// SPDX-License-Identifier: Apache-2.0
#include "node/kept_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "core/durations.h"
#include "node/pace.h"
#include "segment/order_look.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

constexpr std::int64_t first_pause_ns = 1'000 * ms_ns, longest_pause_ns = 60'000 * ms_ns;
constexpr std::int64_t served_well_ns = 60'000 * ms_ns;  // then the next death is a first one
constexpr std::int64_t without_pidfd_ns = 100 * ms_ns;   // a kernel before 5.3
constexpr std::int64_t first_busy_ns = 200 * ms_ns, longest_busy_ns = 5'000 * ms_ns;
constexpr std::int64_t slow_recovery_ns = 10'000 * ms_ns;

void put(char* to, std::size_t room, std::string const& text) {
  std::size_t const bytes = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), bytes);
  std::memset(to + bytes, 0, room - bytes);
}

/// Where no process has its lock: another keeper's may. Whoever opens the lock and finds it gone
/// makes another one.
void remove_status(std::string const& path) {
  std::string const lock = path + ".lock";
  descriptor const held(open(lock.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (held && flock(held.get(), LOCK_EX | LOCK_NB) != 0) return;
  unlink(path.c_str());
  if (held) unlink(lock.c_str());
}

}  // namespace

kept_journal::kept_journal(journal_settings const& settings, user_places& places, uid_t user,
                           bool is_left)
    : settings_(settings),
      places_(places),
      status_path_(segment::journal_status_path(settings.run_dir, user)) {
  report_.uid = user;
  report_.is_recovered = is_left ? 0 : 1;
  if (is_left) report_.phase = journal_phase::recovering;
  unwanted_ns_ = steady_ns();
}

void kept_journal::tell(journal_phase phase) {
  report_.phase = phase;
  has_news_ = true;
}

/// What is in it the keeper never looks at: he may have mounted a file system of his own on it.
void kept_journal::make_place() {
  int const error = places_.make(report_.uid);
  if (error == EBUSY)
    throw sluice_error(
        fmt::format("a process of uid {} holds the directory of his journal", report_.uid));
  if (error != 0)
    throw sluice_error(
        fmt::format("{}: cannot be made: {}", places_.place_of(report_.uid), std::strerror(error)));
}

void kept_journal::begin() {
  make_place();
  if (!sentinel_) sentinel_.emplace();
  std::string const journal = places_.place_of(report_.uid) + "/journal";
  std::vector<std::string> words = {"--user",        std::to_string(report_.uid),
                                    "--jobs",        segment::jobs_dir(settings_.run_dir),
                                    "--journal",     journal,
                                    "--journal-mib", std::to_string(settings_.size_mib),
                                    "--status",      status_path_,
                                    "--remove",      "--bounded"};
  // What is left of before comes home, whoever wants a new one.
  only_recovers_ = !is_wanted_ || report_.is_recovered == 0;
  if (only_recovers_) words.emplace_back("--only-recover");
  if (group_ != nobody) words.insert(words.end(), {"--group", std::to_string(group_)});
  child_ = segment::start_journal(settings_.program, std::move(words), *sentinel_, true);
  ended_ = descriptor(static_cast<int>(syscall(SYS_pidfd_open, child_.pid, 0)));
  fcntl(child_.said.get(), F_SETFL, O_NONBLOCK);
}

void kept_journal::start() {
  put(report_.said, sizeof report_.said, "");
  report_.status = 0;
  words_.clear();
  is_ending_ = false;
  stops_ = {};
  try {
    begin();
  } catch (error const& e) {
    put(report_.said, sizeof report_.said, e.what());
    return pause();
  }
  report_.pid = static_cast<std::uint32_t>(child_.pid);
  begun_ns_ = steady_ns();
  tell(journal_phase::recovering);
}

void kept_journal::wait_for_room(std::string const& why) {
  bool const is_news = report_.phase != journal_phase::full || report_.said != why;
  put(report_.said, sizeof report_.said, why);
  report_.phase = journal_phase::full;
  has_news_ |= is_news;
}

void kept_journal::add_to(std::vector<pollfd>& all) const {
  for (int fd : {child_.ready.get(), child_.said.get(), ended_.get()})
    if (fd >= 0) all.push_back({fd, POLLIN, 0});
}

std::int64_t kept_journal::due_ns() const {
  std::int64_t due_ns = never_ns;
  std::int64_t const now_ns = steady_ns();
  bool const waits = report_.phase == journal_phase::pausing || waits_for_turn(never_ns);
  // Whose turn does not come waits for the end of another one, which is a sign.
  if (waits && !is_stopped_ && !waits_for_turn(now_ns)) due_ns = report_.due_ns;
  if (is_recovering(now_ns)) due_ns = begun_ns_ + slow_recovery_ns;
  if (has_process() && (!ended_ || is_ending_)) due_ns = now_ns + without_pidfd_ns;
  bool const is_idle = !is_wanted_ && report_.phase == journal_phase::serving && !is_ending_;
  if (is_idle) due_ns = std::min(due_ns, unwanted_ns_ + settings_.idle_ns);
  return due_ns;
}

bool kept_journal::waits_for_turn(std::int64_t now_ns) const {
  bool const comes_home = report_.phase == journal_phase::recovering ||
                          (report_.phase == journal_phase::pausing && report_.is_recovered == 0);
  return comes_home && !has_process() && !is_stopped_ && now_ns >= report_.due_ns;
}

bool kept_journal::takes_room() const {
  bool const is_given_up = report_.phase == journal_phase::pausing && report_.is_recovered == 0;
  return !is_over_ && report_.phase != journal_phase::full && !is_given_up;
}

bool kept_journal::is_recovering(std::int64_t now_ns) const {
  return report_.phase == journal_phase::recovering && has_process() &&
         now_ns < begun_ns_ + slow_recovery_ns;
}

void kept_journal::look() {
  if (child_.ready) hear_ready();
  if (child_.said) hear_words();
  if (has_process()) look_for_end();
  std::int64_t const now_ns = steady_ns();
  bool const is_pause_over = report_.phase == journal_phase::pausing && now_ns >= report_.due_ns;
  if (is_pause_over && !is_stopped_ && report_.is_recovered != 0) start();
  bool const is_idle = !is_wanted_ && report_.phase == journal_phase::serving;
  if (is_idle && now_ns >= unwanted_ns_ + settings_.idle_ns) end_process();
}

void kept_journal::end_process() {
  if (!has_process() || is_ending_) return;
  is_ending_ = true;
  // Its user may have stopped it.
  for (int const signal : {SIGTERM, SIGCONT}) kill(child_.pid, signal);
}

void kept_journal::want(gid_t group) {
  is_wanted_ = true;
  group_ = group;
}

void kept_journal::leave() {
  if (!is_wanted_) return;
  is_wanted_ = false;
  unwanted_ns_ = steady_ns();
  if (has_process() || report_.is_recovered == 0) return;
  // Nothing is there that somebody would miss.
  is_over_ = true;
  tell(journal_phase::none);
}

void kept_journal::again() {
  if (report_.phase == journal_phase::pausing) report_.due_ns = steady_ns();
}

void kept_journal::stop() {
  is_stopped_ = true;
  end_process();
}

void kept_journal::hear_ready() {
  pollfd one = {child_.ready.get(), POLLIN, 0};
  if (poll(&one, 1, 0) != 1) return;
  char byte = 0;
  bool const is_ready = read(child_.ready.get(), &byte, 1) == 1;
  child_.ready = {};
  if (!is_ready) return;
  served_ns_ = steady_ns();
  report_.is_recovered = 1;
  tell(journal_phase::serving);
}

void kept_journal::hear_words() {
  char some[1024];
  ssize_t const got = read(child_.said.get(), some, sizeof some);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    child_.said = {};
    return;
  }
  words_.append(some, static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = words_.find('\n')) != std::string::npos;) {
    put(report_.said, sizeof report_.said, words_.substr(0, end));
    words_.erase(0, end + 1);
    ++report_.line;
    has_news_ = true;
  }
  if (words_.size() > sizeof report_.said) words_.clear();
}

/// Its user may stop it, and that again and again: then it ends without having brought all home.
void kept_journal::look_for_end() {
  int status = 0;
  if (waitpid(child_.pid, &status, WNOHANG | WUNTRACED) != child_.pid) return;
  if (WIFSTOPPED(status)) {
    if (is_ending_) kill(child_.pid, stops_.signal_for_it());
    return;
  }
  while (child_.said) {
    pollfd one = {child_.said.get(), POLLIN, 0};
    if (poll(&one, 1, 0) != 1) break;
    hear_words();
  }
  report_.pid = 0;
  report_.status = status;
  child_ = {};
  ended_ = {};
  ended(status);
}

/// Who is killed leaves files that are ahead of the journal. Who ends with an error leaves what the
/// journal has, if there is one, and files that must not be used.
void kept_journal::ended(int status) {
  bool const is_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  bool const is_busy = WIFEXITED(status) && WEXITSTATUS(status) == exit_busy;
  if (is_busy && !is_stopped_) return wait_for_other();
  if (is_clean) report_.is_recovered = 1;
  bool const is_kept = WIFEXITED(status) && !is_clean && WEXITSTATUS(status) != exit_no_journal;
  if (is_kept) report_.is_recovered = 0;
  bool const is_asked = is_ending_ || only_recovers_;
  if (is_clean && is_asked && is_wanted_ && !is_stopped_) return wait_for_room("");
  if (!is_stopped_ && (!is_clean || is_wanted_)) {
    ++report_.deaths;
    return pause();
  }
  go(is_clean);
}

void kept_journal::go(bool is_clean) {
  is_over_ = true;
  remove_status(status_path_);
  bool const is_gone = is_clean && places_.remove(report_.uid) == 0;
  report_.is_gone = is_gone || (!is_clean && places_.is_without_journal(report_.uid)) ? 1 : 0;
  tell(is_gone ? journal_phase::none : is_clean ? journal_phase::emptied : journal_phase::over);
}

/// An earlier keeper's process, which brings all home at the moment.
void kept_journal::wait_for_other() {
  pause_ns_ = std::clamp(pause_ns_ * 2, first_busy_ns, longest_busy_ns);
  report_.due_ns = steady_ns() + pause_ns_;
  tell(journal_phase::recovering);
}

void kept_journal::pause() {
  bool const was_well = served_ns_ > begun_ns_ && steady_ns() - served_ns_ > served_well_ns;
  pause_ns_ =
      was_well || pause_ns_ == 0 ? first_pause_ns : std::min(pause_ns_ * 2, longest_pause_ns);
  report_.due_ns = steady_ns() + pause_ns_;
  tell(journal_phase::pausing);
}

}  // namespace sluice::node
