// SPDX-License-Identifier: Apache-2.0
// All signals are blocked and taken one by one with sigwaitinfo, so there is no handler and no
// race. A signal of the terminal (si_code SI_KERNEL) reaches the child by itself: only those
// somebody sent are passed on.
// A child that stops is followed where a shell waits for that: it was told through us or by the
// terminal, or we are what the terminal shows. Else whoever stopped the child continues or kills
// it, and would not know of us.
#include "commands/cli/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/printable.h"
#include "base/process_mark.h"

namespace sluice::cli {

namespace {

std::vector<char*> pointers(std::vector<std::string> const& words) {
  std::vector<char*> out;
  for (auto const& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

/// What the program must find as we found it.
struct signal_state {
  sigset_t mask;
  struct sigaction child_ended;
};

/// SIGCHLD ignored (some daemons do) would make the kernel forget the exit status.
signal_state take_signals() {
  signal_state before = {};
  sigset_t all;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP})
    sigdelset(&all, fault);
  sigprocmask(SIG_BLOCK, &all, &before.mask);
  struct sigaction dfl = {};
  dfl.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &dfl, &before.child_ended);
  return before;
}

void give_back(signal_state const& before) {
  sigaction(SIGCHLD, &before.child_ended, nullptr);
  sigprocmask(SIG_SETMASK, &before.mask, nullptr);
}

[[noreturn]] void child_side(std::vector<std::string> const& command,
                             std::vector<std::string> const& environment,
                             signal_state const& before, pid_t parent, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(exit_sluice);  // killed before prctl
  give_back(before);
  int const why = become(command, environment);
  (void)!write(failure, &why, sizeof why);
  _exit(status_of_exec_failure(why));
}

/// Takes a pending SIGCONT.
bool take_continue() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGCONT);
  timespec const at_once = {};
  return sigtimedwait(&one, nullptr, &at_once) == SIGCONT;
}

/// Stops as the child did, so that the shell sees it; returns when continued. A SIGCONT that came
/// before we stopped was meant to end this stop; raising the stop discards it, and we would sleep
/// for ever. So nothing comes between looking for it and raising: what is left are nanoseconds.
void stop_like(int sig) {
  pid_t const self = getpid();
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, sig);
  struct sigaction dfl = {}, before = {};
  dfl.sa_handler = SIG_DFL;
  sigaction(sig, &dfl, &before);
  if (!take_continue()) kill(self, sig);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);  // stops here
  sigprocmask(SIG_BLOCK, &one, nullptr);
  sigaction(sig, &before, nullptr);
  take_continue();  // what woke us
}

bool was_sent(siginfo_t const& info) {
  return info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE;
}

/// The chores of the time while we wait. One that fails is given up: the program comes first.
class chores {
 public:
  explicit chores(chore const& work) : work_(work) {}

  void call() {
    if (!work_) return;
    try {
      due_ns_ = work_();
    } catch (std::exception const& e) {
      on_stderr("sluice: warning: {}\n", e.what());
      work_ = {};
    }
  }

  /// Waits for a signal; 0 or less when the chores were due before one came.
  int wait(sigset_t const& signals, siginfo_t& info) {
    if (!work_) return sigwaitinfo(&signals, &info);
    std::int64_t const left_ns = std::max<std::int64_t>(due_ns_ - steady_ns(), 0);
    timespec const left = timespec_of(left_ns);
    int const sig = sigtimedwait(&signals, &info, &left);
    if (steady_ns() >= due_ns_) call();
    return sig;
  }

 private:
  chore work_;
  std::int64_t due_ns_ = 0;
};

bool is_job_control(int sig) { return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU; }

bool is_below(pid_t pid, pid_t ancestor) {
  constexpr unsigned deepest = 64;  // whose parents change while we look
  auto at = static_cast<std::uint32_t>(pid);
  for (unsigned i = 0; i < deepest && at > 1; ++i, at = parent_of(at))
    if (at == static_cast<std::uint32_t>(ancestor)) return true;
  return false;
}

/// We are, or the program is in a group of its own, as a shell is, or has given one the terminal,
/// which may have ended since.
bool is_in_foreground(pid_t child) {
  int const terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  pid_t const shown = terminal >= 0 ? tcgetpgrp(terminal) : -1;
  if (terminal >= 0) close(terminal);
  if (shown <= 0) return false;
  bool const has_ended = kill(-shown, 0) != 0 && errno == ESRCH;
  return has_ended || shown == getpgrp() || shown == getpgid(child) || is_below(shown, child);
}

/// One that waits for our stops. Where none does, nobody would continue us after a SIGSTOP, and the
/// kernel ignores other stops of ours, so we would continue the child for ever.
bool has_shell() {
  pid_t const parent = getppid();  // 0: in another pid namespace
  return parent > 0 && getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

/// By the terminal, for it was read or written to from the background.
bool is_by_terminal(int sig) { return sig == SIGTTIN || sig == SIGTTOU; }

class supervisor {
 public:
  supervisor(pid_t child, chores& meanwhile) : child_(child), meanwhile_(meanwhile) {}

  ending wait_for_end() {
    sigset_t all;
    sigfillset(&all);
    while (!look()) {
      siginfo_t info = {};
      int const sig = meanwhile_.wait(all, info);
      if (is_job_control(sig)) told_ = sig;
      if (sig == SIGCONT) told_ = 0;
      if (sig <= 0 || sig == SIGCHLD || !was_sent(info)) continue;
      if (info.si_code == SI_QUEUE)
        sigqueue(child_, sig, info.si_value);
      else
        kill(child_, sig);
    }
    return ending_;
  }

 private:
  /// True when the child has ended.
  bool look() {
    take_news();
    // What stopped the child may reach us after the news of that.
    while (!is_over_ && stopped_by_ != 0 && is_to_follow()) follow();
    return is_over_;
  }

  /// What became of the child. False: nothing since the last time.
  bool take_news() {
    int status = 0;
    pid_t got = 0;
    bool is_any = false;
    while (!is_over_ &&
           (got = waitpid(child_, &status, WNOHANG | WUNTRACED | WCONTINUED)) == child_) {
      is_any = true;
      is_over_ = WIFEXITED(status) || WIFSIGNALED(status);
      if (WIFEXITED(status)) ending_ = {WEXITSTATUS(status), 0};
      if (WIFSIGNALED(status)) ending_ = {0, WTERMSIG(status)};
      stopped_by_ = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
      if (stopped_by_ == 0) told_ = 0;
    }
    is_over_ |= got < 0 && errno == ECHILD;
    return is_any;
  }

  bool is_to_follow() const {
    if (stopped_by_ == told_) return true;
    return has_shell() && (is_by_terminal(stopped_by_) || is_in_foreground(child_));
  }

  void follow() {
    meanwhile_.call();
    stop_like(std::exchange(stopped_by_, 0));
    told_ = 0;
    // A shell continues all of us, and the child may have stopped again.
    if (!take_news()) kill(child_, SIGCONT);
  }

  pid_t const child_;
  chores& meanwhile_;
  ending ending_;
  bool is_over_ = false;
  int stopped_by_ = 0;  // 0: it runs
  int told_ = 0;        // the last signal that told us to stop, as it told or will tell the child
};

}  // namespace

int status_of_exec_failure(int why) {
  return why == ENOENT || why == ENOTDIR ? exit_missing : exit_cannot;
}

int become(std::vector<std::string> const& command, std::vector<std::string> const& environment) {
  auto const argv = pointers(command);
  auto const envp = pointers(environment);
  execvpe(argv[0], argv.data(), envp.data());
  return errno;
}

ending supervise(std::vector<std::string> const& command,
                 std::vector<std::string> const& environment, chore const& meanwhile) {
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0)
    throw sluice_error(fmt::format("pipe: {}", std::strerror(errno)));
  signal_state const before = take_signals();
  pid_t const self = getpid();
  pid_t const child = fork();
  if (child == 0) child_side(command, environment, before, self, failure[1]);
  int const fork_error = errno;
  close(failure[1]);
  if (child < 0) {
    close(failure[0]);
    give_back(before);
    throw no_process(fmt::format("fork: {}", std::strerror(fork_error)));
  }
  int why = 0;
  bool const failed = read(failure[0], &why, sizeof why) == sizeof why;
  close(failure[0]);
  chores work(meanwhile);
  work.call();
  ending const e = supervisor(child, work).wait_for_end();
  give_back(before);
  if (failed)
    throw error(status_of_exec_failure(why),
                fmt::format("cannot execute {}: {}", printable(command[0]), std::strerror(why)));
  return e;
}

void end_like(ending const& e) {
  if (e.signal != 0) {
    prctl(PR_SET_DUMPABLE, 0);  // one core file, the program's, is enough
    struct sigaction dfl = {};
    dfl.sa_handler = SIG_DFL;
    sigaction(e.signal, &dfl, nullptr);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, e.signal);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    kill(getpid(), e.signal);
  }
  std::exit(e.signal != 0 ? 128 + e.signal : e.code);
}

}  // namespace sluice::cli
