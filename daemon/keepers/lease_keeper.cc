// SPDX-License-Identifier: Apache-2.0
#include "keepers/lease_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/keep_only.h"
#include "base/mounts.h"
#include "base/process_mark.h"
#include "keepers/keeping.h"
#include "segment/jobs.h"
#include "segment/mapping.h"

namespace sluice::keepers {

namespace {

using abi::lease_state;
using read_board = abi::lease_board<abi::read_leases>;

constexpr std::int64_t tell_ns = 2 * second_ns;       // the board is told that we live
constexpr std::int64_t take_over_ns = second_ns / 2;  // between two looks whether the keeper lives

struct leased_file {
  descriptor fd, process;
  std::uint64_t device = 0, inode = 0;
};

/// The file that a process of ours has open. Nothing but a regular file is ever opened, and no
/// server is asked.
leased_file find_file(std::uint32_t pid, unsigned fd) {
  leased_file f;
  f.process = descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  struct stat of_process = {};
  bool const is_ours = stat(fmt::format("/proc/{}", pid).c_str(), &of_process) == 0 &&
                       of_process.st_uid == geteuid();
  if (!f.process || !is_ours) return f;
  descriptor const named(open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), O_PATH | O_CLOEXEC));
  struct statx st = {};
  if (!named ||
      statx(named.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) != 0)
    return f;
  if (!S_ISREG(st.stx_mode) || !is_local(named.get()) || has_ended(f.process.get())) return f;
  f.device = device_number(st.stx_dev_major, st.stx_dev_minor);
  f.inode = st.stx_ino;
  f.fd = descriptor(open(fmt::format("/proc/self/fd/{}", named.get()).c_str(),
                         O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return f;
}

read_board* rung = nullptr;

/// Of a lease that somebody waits for: the loop looks at all of them. It ends the loop's sleep.
void note_signal(int) { rung->head.bell.fetch_add(1); }

void ring() {
  rung->head.bell.fetch_add(1);
  wake(&rung->head.bell);
}

/// A thread that opens files: a listener of fanotify may let an open wait, and that listener may
/// wait for a lease to be given back.
class opener {
 public:
  struct answer {
    unsigned row;
    std::uint64_t word;
    leased_file file;
  };

  void ask(unsigned row, std::uint64_t word) {
    std::lock_guard const lock(mutex_);
    asked_.push_back({row, word, {}});
    has_more_.notify_one();
  }
  std::vector<answer> take() {
    std::lock_guard const lock(mutex_);
    return std::exchange(done_, {});
  }
  [[noreturn]] void run() {
    for (std::unique_lock lock(mutex_);;) {
      has_more_.wait(lock, [this] { return !asked_.empty(); });
      answer one = std::move(asked_.front());
      asked_.pop_front();
      lock.unlock();
      one.file = find_file(abi::pid_of(one.word), abi::fd_of(one.word));
      lock.lock();
      done_.push_back(std::move(one));
      ring();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_more_;
  std::deque<answer> asked_;
  std::vector<answer> done_;
};

class keeper {
 public:
  /// `deaths`: an epoll descriptor.
  keeper(read_board& board, int deaths) : board_(board), deaths_(deaths) {}

  /// Signals are blocked meanwhile: they are for the loop.
  void start_threads() {
    std::thread([this] { opener_.run(); }).detach();
    std::thread([this] { watch_deaths(); }).detach();
  }

  [[noreturn]] void run() {
    take_over();
    for (;;) {
      std::uint32_t const seen = board_.head.bell.load();
      std::int64_t const before_ns = steady_ns();
      for (opener::answer& one : opener_.take()) lease(std::move(one));
      for (unsigned i = 0; i < abi::read_leases; ++i) look_at(i);
      trust_from(before_ns);
      wait_on(board_.head.bell, seen, tell_ns);
    }
  }

 private:
  struct row {
    leased_file file;
    std::uint64_t word = 0;   // `held`
    std::uint64_t asked = 0;  // the opener has it; 0: it has nothing of this row
  };

  /// Each process is told of once.
  [[noreturn]] void watch_deaths() {
    for (epoll_event one = {};;)
      if (epoll_wait(deaths_.get(), &one, 1, -1) > 0) ring();
  }

  /// Waits until there is no other one: several `sluice run` may have one job.
  void take_over() {
    auto const self = static_cast<std::uint32_t>(gettid());
    register_death(board_.head.keeper);
    board_.head.pid_space.store(segment::own_pid_space());
    for (;;) {
      std::uint32_t now = board_.head.keeper.load();
      if (now != 0 && (now & abi::keeper_died) == 0) {
        wait_on(board_.head.keeper, now, take_over_ns);
        continue;
      }
      board_.head.trusted_until.store(0);
      if (board_.head.keeper.compare_exchange_strong(now, self)) return;
    }
  }

  /// A lease that was whole then is not ended before half the time has passed.
  void trust_from(std::int64_t before_ns) {
    board_.head.trusted_until.store(trusted_until(before_ns, breaks_.seconds(before_ns)));
  }

  bool is_whole(row const& r) const { return fcntl(r.file.fd.get(), F_GETLEASE) == F_RDLCK; }

  void settle(abi::lease_row& at, std::uint64_t word, lease_state s) {
    at.word.compare_exchange_strong(word, abi::with(word, s));
  }

  void lease(opener::answer&& one) {
    abi::lease_row& at = board_.of[one.row];
    row& r = rows_[one.row];
    std::uint64_t word = one.word;
    r.asked = 0;
    if (at.word.load() != word) return;
    epoll_event death = {EPOLLIN | EPOLLONESHOT, {}};
    bool const is_held =
        one.file.fd && fcntl(one.file.fd.get(), F_SETLEASE, F_RDLCK) == 0 &&
        epoll_ctl(deaths_.get(), EPOLL_CTL_ADD, one.file.process.get(), &death) == 0;
    if (!is_held) return settle(at, word, lease_state::refused);
    at.device.store(one.file.device);
    at.inode.store(one.file.inode);
    r.word = abi::with(word, lease_state::held);
    if (at.word.compare_exchange_strong(word, r.word)) r.file = std::move(one.file);
  }

  /// Somebody is about to write, or the process is gone. The board says so first.
  void keep(abi::lease_row& at, row& r, std::uint64_t word) {
    bool const is_its = r.file.fd && r.word == word;
    if (is_its && has_ended(r.file.process.get())) settle(at, word, lease_state::free);
    if (!is_its || !is_whole(r)) settle(at, word, lease_state::broken);
  }

  void look_at(unsigned number) {
    abi::lease_row& at = board_.of[number];
    row& r = rows_[number];
    std::uint64_t word = at.word.load();
    lease_state const state = abi::state_of(word);
    if (state == lease_state::asked && r.asked == 0) opener_.ask(number, r.asked = word);
    if (state == lease_state::held) keep(at, r, word);
    bool const is_over = state == lease_state::broken || state == lease_state::refused;
    if (is_over && kill(static_cast<pid_t>(abi::pid_of(word)), 0) != 0 && errno == ESRCH)
      settle(at, word, lease_state::free);
    word = at.word.load();
    if (r.file.fd && word != r.word) r.file = {};
    // Not before the opener is done: its open would break a lease that the program takes now.
    if (state == lease_state::ended && r.asked == 0) {
      settle(at, word, lease_state::free);
      wake(&at.word);
    }
  }

  read_board& board_;
  opener opener_;
  descriptor const deaths_;
  std::array<row, abi::read_leases> rows_;
  break_time breaks_;
};

/// Nothing of the program's terminal, pipes or directories stays with us. The epoll descriptor.
int stand_apart() {
  setsid();
  prctl(PR_SET_NAME, "sluice-leases");
  (void)!chdir("/");
  return keep_only(epoll_create1(EPOLL_CLOEXEC));
}

/// No child has the memory of its parent's segments: it maps its own.
[[noreturn]] void child_side(std::string const& path, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  auto const segment = segment::mapping::open(path);
  read_board& board = as_shared(segment->reads);
  int const deaths = stand_apart();
  rung = &board;
  struct sigaction told = {};
  told.sa_handler = note_signal;
  sigaction(SIGIO, &told, nullptr);
  sigset_t some;
  sigfillset(&some);
  sigprocmask(SIG_SETMASK, &some, nullptr);
  static keeper only(board, deaths);
  only.start_threads();
  sigemptyset(&some);
  sigprocmask(SIG_SETMASK, &some, nullptr);
  only.run();
}

}  // namespace

std::unique_ptr<lease_keeper> lease_keeper::begin(foreign<abi::segment>& s,
                                                  std::string const& path) {
  if (s.reads.head.targets == 0 || break_time_s() == 0) return nullptr;
  pid_t const parent = getpid(), pid = fork();
  if (pid == 0) try {
      child_side(path, parent);
    } catch (...) {
      _exit(1);
    }
  if (pid < 0) return nullptr;
  std::unique_ptr<lease_keeper> begun(new lease_keeper(pid));
  await_keeper(as_shared(s.reads).head, pid);
  return begun;
}

lease_keeper::~lease_keeper() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sluice::keepers
