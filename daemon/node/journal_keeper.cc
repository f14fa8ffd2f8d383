// SPDX-License-Identifier: Apache-2.0
#include "node/journal_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "core/durations.h"
#include "node/journal_places.h"
#include "node/kept_journal.h"
#include "node/pace.h"
#include "node/user_places.h"
#include "runtime/privileges.h"
#include "segment/journal_process.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

/// Who holds his journal up is not waited for longer: its process is told, and goes on by itself.
constexpr std::int64_t end_patience_ns = 90'000 * ms_ns;
constexpr std::ptrdiff_t most_recovering = 16;

/// Of entries that only the keeper makes.
std::vector<uid_t> users_in(std::string const& directory) {
  std::unique_ptr<DIR, int (*)(DIR*)> const all(opendir(directory.c_str()), closedir);
  if (!all) throw sluice_error(fmt::format("{}: {}", directory, std::strerror(errno)));
  std::vector<uid_t> out;
  while (dirent const* const one = readdir(all.get())) {
    std::string_view const name = one->d_name;
    uid_t user = 0;
    auto const [end, error] = std::from_chars(name.data(), name.data() + name.size(), user);
    bool const is_number = error == std::errc() && end == name.data() + name.size();
    if (is_number && user != nobody && std::to_string(user) == name) out.push_back(user);
  }
  return out;
}

/// Where users come through, and only we write.
void make_own(std::string const& directory, mode_t mode) {
  struct stat st = {};
  if (mkdir(directory.c_str(), mode) != 0 && errno != EEXIST)
    throw sluice_error(fmt::format("{}: cannot be made: {}", directory, std::strerror(errno)));
  if (lstat(directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
    throw sluice_error(fmt::format("{}: is not a directory of uid {}", directory, geteuid()));
  if (chmod(directory.c_str(), mode) != 0)
    throw sluice_error(fmt::format("{}: {}", directory, std::strerror(errno)));
}

class keeper {
 public:
  keeper(journal_settings const& settings, descriptor to_sluiced, std::string const& lacks)
      : settings_(settings), places_(settings.directory), sluiced_(std::move(to_sluiced)) {
    std::memcpy(own_.lacks, lacks.data(), std::min(lacks.size(), sizeof own_.lacks - 1));
  }

  void run() {
    begin();
    while (!may_end()) look();
    say_own(journal_phase::over, own_.said);
    send_news();
  }

 private:
  using kept = std::map<uid_t, std::unique_ptr<kept_journal>>;

  bool may_end() const {
    bool const is_waiting = std::any_of(all_.begin(), all_.end(),
                                        [](auto const& one) { return one.second->has_process(); });
    return stopped_ns_ != 0 && (!is_waiting || steady_ns() - stopped_ns_ > end_patience_ns);
  }

  /// Tried again when somebody has mended something.
  void begin() {
    try {
      make_own(settings_.directory, geteuid() == 0 ? 0711 : 0700);
      make_own(segment::journals_dir(settings_.run_dir), 0700);
      bring_old_home();
      for (uid_t const user : users_in(settings_.directory)) {
        auto const [at, is_new] = all_.try_emplace(user);
        if (is_new) at->second = std::make_unique<kept_journal>(settings_, places_, user, true);
      }
      recover_left();
      is_begun_ = true;
      say_own(journal_phase::listed, "");
    } catch (error const& e) {
      say_own(journal_phase::pausing, e.what());
    }
    send_news();
  }

  /// A journal of all users, as older versions kept it: before anybody's files are used.
  void bring_old_home() const {
    std::string const old = settings_.directory + "/log";
    struct stat st = {};
    if (lstat(old.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    segment::recover_journal(settings_.recover, old);
    unlink(old.c_str());
  }

  void say_own(journal_phase phase, std::string const& words) {
    own_.phase = phase;
    std::size_t const bytes = std::min(words.size(), sizeof own_.said - 1);
    std::memcpy(own_.said, words.data(), bytes);
    own_.said[bytes] = 0;
    has_own_news_ = true;
  }

  void look() {
    bool const has_news = has_own_news_ || std::any_of(all_.begin(), all_.end(), [](auto& one) {
                            return one.second->has_news();
                          });
    auto const events = static_cast<short>(has_news ? POLLIN | POLLOUT : POLLIN);
    std::vector<pollfd> each = {{is_gone_ ? -1 : sluiced_.get(), events, 0}};
    std::int64_t due_ns = stopped_ns_ != 0 ? stopped_ns_ + end_patience_ns : never_ns;
    for (auto const& [user, one] : all_) {
      one->add_to(each);
      due_ns = std::min(due_ns, one->due_ns());
    }
    if (poll(each.data(), each.size(), poll_ms(due_ns, steady_ns())) < 0) return;
    if ((each[0].revents & ~POLLOUT) != 0) hear_sluiced();
    for (auto const& [user, one] : all_) one->look();
    if (stopped_ns_ == 0) {
      recover_left();
      let_in();
    }
    send_news();
    std::erase_if(all_,
                  [](auto const& one) { return one.second->is_over() && !one.second->has_news(); });
  }

  /// Some at a time, for each is a process. One that takes long does not hold up those of others.
  void recover_left() {
    std::int64_t const now_ns = steady_ns();
    auto at_once = std::count_if(all_.begin(), all_.end(), [&](auto const& one) {
      return one.second->is_recovering(now_ns);
    });
    journal_places running(settings_.owner_of);
    for (auto const& [user, one] : all_)
      if (one->has_process() && one->report().phase == journal_phase::recovering)
        running.take(user);
    for (auto const& [user, one] : all_) {
      if (at_once >= most_recovering) return;
      if (!one->waits_for_turn(now_ns) || running.has_all(user)) continue;
      one->start();
      running.take(user);
      ++at_once;
    }
  }

  /// Those that wait for room, as far as there is some.
  void let_in() {
    journal_places places(settings_.owner_of);
    for (auto const& [user, one] : all_)
      if (one->takes_room()) places.take(user);
    for (auto const& [user, one] : all_) {
      if (!one->waits_for_room()) continue;
      if (std::string const why = why_no_room(places, user); !why.empty()) {
        one->wait_for_room(why);
        continue;
      }
      places.take(user);
      one->start();
    }
  }

  /// Empty: there is some.
  std::string why_no_room(journal_places const& places, uid_t user) const {
    if ((places.taken() + 1) * settings_.size_mib > settings_.total_mib)
      return fmt::format("{} journals of {} MiB are all that journal-total allows", places.taken(),
                         settings_.size_mib);
    if (!places.has_all(user)) return {};
    return fmt::format("{} journals of the user who has uid {} are served or come home",
                       places.of_owner(user), user);
  }

  /// What finds no room is sent when there is some.
  void send_news() {
    if (is_gone_) {
      has_own_news_ = false;
      for (auto const& [user, one] : all_) one->told();
      return;
    }
    for (auto const& [user, one] : all_) {
      if (!one->has_news()) continue;
      if (!send_one(one->report())) return;
      one->told();
    }
    if (has_own_news_ && send_one(own_)) has_own_news_ = false;
  }

  bool send_one(journal_report const& report) const {
    return send(sluiced_.get(), &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           sizeof report;
  }

  /// Its end is a word too.
  void hear_sluiced() {
    while (!is_gone_) {
      journal_word word = {};
      ssize_t const got = recv(sluiced_.get(), &word, sizeof word, MSG_DONTWAIT | MSG_TRUNC);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) is_gone_ = true;
      if (is_gone_) return stop();
      if (got == sizeof word) heed(word);
    }
  }

  void heed(journal_word const& word) {
    bool const is_user = word.uid != nobody && (geteuid() == 0 || word.uid == geteuid());
    switch (word.verb) {
      case journal_verb::stop:
        return stop();
      case journal_verb::again:
        if (!is_begun_ && stopped_ns_ == 0) begin();
        for (auto const& [user, one] : all_) one->again();
        return;
      case journal_verb::want:
        if (is_user && is_begun_ && stopped_ns_ == 0) want(word.uid, word.gid);
        return;
      case journal_verb::leave:
        if (auto const at = all_.find(word.uid); at != all_.end()) at->second->leave();
        return;
    }
  }

  void want(uid_t user, gid_t group) {
    auto& one = all_[user];
    bool const is_new = one == nullptr || one->is_over();
    if (is_new) one = std::make_unique<kept_journal>(settings_, places_, user, false);
    one->want(group);
    if (is_new) one->wait_for_room("");
  }

  void stop() {
    if (stopped_ns_ != 0) return;
    stopped_ns_ = steady_ns();
    for (auto const& [user, one] : all_) one->stop();
  }

  journal_settings settings_;
  user_places places_;
  descriptor sluiced_;
  kept all_;
  journal_report own_;
  bool has_own_news_ = false, is_begun_ = false, is_gone_ = false;
  std::int64_t stopped_ns_ = 0;
};

/// All that is sluiced's is closed: its lock on the run directory is free when it dies.
[[noreturn]] void become_keeper(journal_settings const& settings, int socket) {
  int status = 0;
  try {
    constexpr int place = 3;
    socket = fcntl(socket, F_DUPFD_CLOEXEC, place + 1);
    dup3(socket, place, O_CLOEXEC);
    close_range(place + 1, ~0u, 0);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    prctl(PR_SET_NAME, "sluiced-journal");
    auto const kept = runtime::drop_to_journal();
    keeper(settings, descriptor(place), kept.missing).run();
  } catch (std::exception const& e) {
    on_stderr("sluiced: the journal's keeper: {}\n", e.what());
    status = exit_sluice;
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

journal_child keep_journals(journal_settings const& settings) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw sluice_error(fmt::format("socketpair: {}", std::strerror(errno)));
  descriptor mine(ends[0]), its(ends[1]);
  pid_t const pid = fork();
  if (pid == 0) become_keeper(settings, its.get());
  if (pid < 0) throw sluice_error(fmt::format("fork: {}", std::strerror(errno)));
  return {pid, std::move(mine)};
}

}  // namespace sluice::node
