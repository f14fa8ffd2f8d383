// SPDX-License-Identifier: Apache-2.0
#include "node/journal_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "core/durations.h"
#include "runtime/privileges.h"
#include "segment/journal_process.h"

namespace sluice::node {

namespace {

constexpr std::int64_t first_pause_ns = 1'000 * ms_ns, longest_pause_ns = 60'000 * ms_ns;
constexpr std::int64_t served_well_ns = 60'000 * ms_ns;  // then the next death is a first one

void put(char* to, std::size_t room, std::string const& text) {
  std::size_t const bytes = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), bytes);
  std::memset(to + bytes, 0, room - bytes);
}

class keeper {
 public:
  keeper(journal_settings const& settings, descriptor to_sluiced, std::string const& lacks)
      : settings_(settings), sluiced_(std::move(to_sluiced)) {
    put(report_.lacks, sizeof report_.lacks, lacks);
  }

  void run() {
    start();
    while (!is_told_ || report_.pid != 0) look();
    report_.phase = journal_phase::over;
    tell();
  }

 private:
  static std::int64_t now_ns() { return steady_ns(); }

  /// What does not arrive is in the next one.
  void tell() {
    (void)!send(sluiced_.get(), &report_, sizeof report_, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void start() {
    put(report_.said, sizeof report_.said, "");
    report_.status = 0;
    words_.clear();
    try {
      child_ = segment::start_journal(settings_.program,
                                      {"--jobs", settings_.jobs, "--journal", settings_.file,
                                       "--journal-mib", std::to_string(settings_.size_mib)},
                                      sentinel_, true);
      ended_ = descriptor(static_cast<int>(syscall(SYS_pidfd_open, child_.pid, 0)));
      fcntl(child_.said.get(), F_SETFL, O_NONBLOCK);
    } catch (error const& e) {
      put(report_.said, sizeof report_.said, e.what());
      return pause();
    }
    report_.pid = static_cast<std::uint32_t>(child_.pid);
    report_.phase = journal_phase::recovering;
    begun_ns_ = now_ns();
    tell();
  }

  void look() {
    // Without a pidfd (a kernel before 5.3) its end is looked for ten times a second.
    int limit_ms = report_.pid != 0 && !ended_ ? 100 : -1;
    if (report_.phase == journal_phase::pausing)
      limit_ms = static_cast<int>(std::max<std::int64_t>(report_.due_ns - now_ns(), 0) / ms_ns) + 1;
    pollfd each[] = {{is_told_ ? -1 : sluiced_.get(), POLLIN, 0},
                     {child_.ready.get(), POLLIN, 0},
                     {child_.said.get(), POLLIN, 0},
                     {ended_.get(), POLLIN, 0}};
    if (poll(each, std::size(each), limit_ms) < 0) return;
    if (each[0].revents != 0) hear_sluiced();
    if (each[1].revents != 0) hear_ready();
    if (each[2].revents != 0) hear_words();
    if (report_.pid != 0) look_for_end();
    bool const is_due = report_.phase == journal_phase::pausing && now_ns() >= report_.due_ns;
    if (is_due && !is_told_) start();
  }

  /// Its end is a word too.
  void hear_sluiced() {
    char word = 0;
    ssize_t const got = recv(sluiced_.get(), &word, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == 1 && word == static_cast<char>(journal_word::again)) {
      if (report_.phase == journal_phase::pausing) report_.due_ns = now_ns();
      return;
    }
    is_told_ = true;
    if (report_.pid != 0) kill(child_.pid, SIGTERM);
  }

  void hear_ready() {
    char byte = 0;
    bool const is_ready = read(child_.ready.get(), &byte, 1) == 1;
    child_.ready = {};
    if (!is_ready) return;
    report_.phase = journal_phase::serving;
    served_ns_ = now_ns();
    tell();
  }

  void hear_words() {
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
      tell();
    }
    if (words_.size() > sizeof report_.said) words_.clear();
  }

  void look_for_end() {
    int status = 0;
    if (waitpid(child_.pid, &status, WNOHANG) != child_.pid) return;
    while (child_.said) {
      pollfd one = {child_.said.get(), POLLIN, 0};
      if (poll(&one, 1, 0) != 1) break;
      hear_words();
    }
    report_.pid = 0;
    report_.status = status;
    child_ = {};
    ended_ = {};
    if (is_told_) return;
    ++report_.deaths;
    pause();
  }

  void pause() {
    bool const was_well = served_ns_ > begun_ns_ && now_ns() - served_ns_ > served_well_ns;
    pause_ns_ =
        was_well || pause_ns_ == 0 ? first_pause_ns : std::min(pause_ns_ * 2, longest_pause_ns);
    report_.phase = journal_phase::pausing;
    report_.due_ns = now_ns() + pause_ns_;
    tell();
  }

  journal_settings settings_;
  descriptor sluiced_, ended_;
  segment::sentinel_pair sentinel_;
  segment::journal_process child_;
  journal_report report_;
  std::string words_;
  bool is_told_ = false;
  std::int64_t begun_ns_ = 0, served_ns_ = 0, pause_ns_ = 0;
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
    fmt::print(stderr, "sluiced: the journal's keeper: {}\n", e.what());
    status = exit_sluice;
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

journal_child keep_journal(journal_settings const& settings) {
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
