// SPDX-License-Identifier: Apache-2.0
#include "keepers/write_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/keep_only.h"
#include "base/mounts.h"
#include "base/on_stderr.h"
#include "base/process_mark.h"
#include "keepers/keeping.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::keepers {

namespace {

using abi::lease_state;

constexpr std::int64_t tick_length_ns = 4'000'000;   // bytes wait for so long
constexpr std::int64_t beat_ns = second_ns;          // between two looks where nothing is to do
constexpr std::int64_t patience_ns = 3 * second_ns;  // with one that does not look
constexpr off_t aside_bytes = 2 * core::ring::room;  // for each row, on its file system
// Where less is left, the program is to be told at the very write that nothing is.
constexpr std::uint64_t roomy_bytes = 64 << 20, scarce_bytes = 16 << 20;
// No file system that we serve takes less in a file (see is_large()); its end is told at the very
// write, too.
constexpr std::uint64_t longest_file = std::uint64_t{1} << 40;

/// What both processes know of a row. They have one table of descriptors.
struct kept_file {
  int fd, process;     // of the program; -1: none
  int aside;           // a file without a name that keeps room, for when there is no other
  std::uint64_t word;  // the row, `held`
};

struct book {
  kept_file of[abi::write_leases];
  std::atomic<std::uint32_t> beats;  // worker
  int watched;                       // by who follows: the worker, as a process; -1: it is not yet
};

abi::lease_head* bell_of = nullptr;

/// Of a lease that somebody waits for: the loop looks at all of them. It ends the loop's sleep.
void note_break(int) { bell_of->bell.fetch_add(1); }

/// Equal for processes of the same rights: what one of them writes the other could have written.
std::string rights_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  std::string found;
  for (std::string line; std::getline(in, line);)
    for (std::string_view key : {"Uid:", "Gid:", "Groups:", "CapEff:"})
      if (line.starts_with(key)) found += line + "\n";
  return found;
}

/// Nobody has limited the length of its files.
bool is_unlimited(pid_t pid) {
  rlimit limit = {};
  return prlimit(pid, RLIMIT_FSIZE, nullptr, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

/// A write may take something away that depends on who makes it.
bool has_privilege(int fd, struct stat const& st) {
  return (st.st_mode & (S_ISUID | S_ISGID)) != 0 ||
         fgetxattr(fd, "security.capability", nullptr, 0) >= 0;
}

/// Of ext4: without extents a file ends at 16 GiB, or before.
bool is_large(int fd) {
  struct statfs where = {};
  if (fstatfs(fd, &where) != 0) return false;
  if (where.f_type != EXT4_SUPER_MAGIC) return true;
  int flags = 0;
  return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_EXTENT_FL) != 0;
}

/// Of one that says no size there is enough.
bool has_left(int fd, std::uint64_t bytes) {
  struct statfs where = {};
  return fstatfs(fd, &where) == 0 &&
         (where.f_blocks == 0 ||
          static_cast<std::uint64_t>(where.f_bavail) * static_cast<std::uint64_t>(where.f_bsize) >=
              bytes);
}

/// Of the file, or of the position if nothing is appended to it.
std::uint64_t end_of(int fd) {
  struct stat st = {};
  if ((fcntl(fd, F_GETFL) & O_APPEND) == 0)
    return static_cast<std::uint64_t>(lseek(fd, 0, SEEK_CUR));
  return fstat(fd, &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
}

class worker {
 public:
  worker(abi::ring_area& area, book& known, int deaths, int until_closed)
      : area_(area),
        head_(area.board.head),
        book_(known),
        deaths_(deaths),
        until_closed_(until_closed),
        rights_(rights_of(getpid())) {}

  /// The first of its house. Waits until there is no other one: several `sluice run` may have one
  /// job.
  [[noreturn]] void begin() {
    register_death(head_.keeper);
    for (std::uint32_t none = 0;
         !head_.keeper.compare_exchange_strong(none, static_cast<std::uint32_t>(getpid()));
         none = 0) {
      if (has_ended(until_closed_)) _exit(0);
      wait_on(head_.keeper, none, beat_ns / 20);
    }
    head_.pid_space.store(segment::own_pid_space());
    area_.head.house.store(static_cast<std::uint32_t>(getpid()));
    run();
  }

 private:
  [[noreturn]] void run() {
    start_follower();
    for (;;) {
      std::uint32_t const seen = head_.bell.load();
      book_.beats.fetch_add(1);
      std::int64_t const before_ns = steady_ns();
      bool const is_ending = has_ended(until_closed_);
      bool const is_tick = tick_ns_ != 0 && before_ns >= tick_ns_;
      if (is_tick) tick_ns_ = 0;
      for (unsigned i = 0; i < abi::write_leases; ++i) look_at(i, is_ending, is_tick);
      if (is_ending && !has_any()) end();
      head_.trusted_until.store(trusted_until(before_ns, breaks_.seconds(before_ns)));
      follow_follower();
      rest(seen);
    }
  }

  /// Who follows finds that nobody is to be followed.
  [[noreturn]] void end() {
    head_.keeper.store(0);
    wake(&head_.keeper);
    _exit(0);
  }

  bool has_any() const {
    return std::any_of(std::begin(book_.of), std::end(book_.of),
                       [](kept_file const& k) { return k.fd >= 0; });
  }
  bool is_any_waiting() {
    for (unsigned i = 0; i < abi::write_leases; ++i)
      if (book_.of[i].fd >= 0 && is_waiting(i)) return true;
    return false;
  }

  /// Until the next tick where bytes wait; else the first byte in any ring ends it.
  void rest(std::uint32_t seen) {
    if (tick_ns_ == 0) area_.head.is_asleep.store(1);
    bool const is_waiting = is_any_waiting();
    std::int64_t const now_ns = steady_ns();
    if (is_waiting && tick_ns_ == 0) tick_ns_ = now_ns + tick_length_ns;
    if (is_waiting) area_.head.is_asleep.store(0);
    std::int64_t const left_ns = tick_ns_ != 0 ? tick_ns_ - now_ns : beat_ns;
    if (left_ns > 0) wait_on(head_.bell, seen, left_ns);
    area_.head.is_asleep.store(0);
  }

  core::ring& ring_of(unsigned i) { return area_.ring[i]; }
  bool is_waiting(unsigned i) { return core::waiting_bytes(ring_of(i)) != 0; }

  void tell(unsigned i) {
    ring_of(i).moves.fetch_add(1);
    wake(&ring_of(i).moves);
  }

  void settle(unsigned i, std::uint64_t word, lease_state s) {
    area_.board.of[i].word.compare_exchange_strong(word, abi::with(word, s));
    tell(i);
  }

  void look_at(unsigned i, bool is_ending, bool is_tick) {
    abi::lease_row& at = area_.board.of[i];
    kept_file& k = book_.of[i];
    std::uint64_t const word = at.word.load();
    lease_state const state = abi::state_of(word);
    if (state == lease_state::asked) answer(i, word, !is_ending && grant(i, word));
    bool const is_over = state == lease_state::broken || state == lease_state::refused;
    if (is_over && kill(static_cast<pid_t>(abi::pid_of(word)), 0) != 0 && errno == ESRCH) {
      ring_of(i).is_taken.store(0);
      settle(i, word, lease_state::free);
    }
    if (k.fd < 0) {
      if (state == lease_state::ended) settle_ended(i, word);
      return;
    }
    if (at.word.load() == k.word) return keep(i, is_ending, is_tick);
    release(i, word, state == lease_state::ended ? lease_state::broken : state);
  }

  /// Nothing of it is open here.
  void settle_ended(unsigned i, std::uint64_t word) {
    // Who was here before had released it, and died before he said so.
    bool const was_ours = abi::with(word, lease_state::held) == book_.of[i].word;
    // What waits there another house had, and the program writes it out.
    bool const is_all_written = !is_waiting(i) || ring_of(i).error.load() != 0;
    if (was_ours || is_all_written)
      settle(i, word, was_ours ? lease_state::broken : lease_state::free);
  }

  /// The program may have ended it meanwhile; then it does not look at it again.
  void answer(unsigned i, std::uint64_t word, bool is_granted) {
    std::uint64_t seen = word;
    lease_state const says = is_granted ? lease_state::held : lease_state::refused;
    if (area_.board.of[i].word.compare_exchange_strong(seen, abi::with(word, says))) return tell(i);
    std::uint64_t const ended = abi::with(word, lease_state::ended);
    if (is_granted) return release(i, ended, lease_state::free);
    settle(i, ended, lease_state::free);
  }

  bool may_still(std::uint32_t pid) const {
    auto const p = static_cast<pid_t>(pid);
    return rights_of(p) == rights_ && is_unlimited(p);
  }

  /// Of a row that is held.
  void keep(unsigned i, bool is_ending, bool is_tick) {
    kept_file const k = book_.of[i];
    bool const has_died = has_ended(k.process);
    bool const at_once = ring_of(i).wants_all.exchange(0) != 0 || is_tick;
    bool const is_due = is_due_now(i, at_once);
    bool const may_write = !is_due || has_died || may_still(abi::pid_of(k.word));
    if (has_died || is_ending || !may_write || fcntl(k.fd, F_GETLEASE) != F_WRLCK) {
      if (has_died) ring_of(i).is_taken.store(0);  // who copied is dead, too
      return release(i, k.word, has_died ? lease_state::free : lease_state::broken);
    }
    if (is_due && !write_out(i)) return release(i, k.word, lease_state::broken);
    if (is_due || at_once) tell(i);
  }

  bool is_due_now(unsigned i, bool at_once) {
    std::uint64_t const bytes = core::waiting_bytes(ring_of(i));
    return bytes >= core::ring::due || (at_once && bytes != 0);
  }

  /// All that is in the ring now. False: that was the last of it; an error says what is lost.
  bool write_out(unsigned i) {
    kept_file& k = book_.of[i];
    core::ring& r = ring_of(i);
    abi::write_begun& begun = area_.begun[i];
    bool is_last = !has_left(k.fd, scarce_bytes) || end_of(k.fd) > longest_file;
    // Whoever may write there may write anything.
    std::uint64_t const end = std::min(core::bytes_in(r), r.begin.load() + core::ring::room);
    for (std::uint64_t at = r.begin.load(); at < end;) {
      std::uint64_t const from = at % core::ring::room;
      std::uint64_t const first = std::min(end - at, core::ring::room - from);
      iovec const parts[] = {{r.bytes + from, first}, {r.bytes, end - at - first}};
      begun.ring_begin.store(at);
      begun.file_end.store(end_of(k.fd));
      begun.bytes.store(static_cast<std::uint32_t>(end - at));
      ssize_t const n = writev(k.fd, parts, parts[1].iov_len != 0 ? 2 : 1);
      if (n <= 0) begun.bytes.store(0);
      if (n < 0 && (errno == ENOSPC || errno == EDQUOT) && give_room(k)) {
        is_last = true;
        continue;
      }
      if (n <= 0) {
        r.error.store(static_cast<std::uint32_t>(n == 0 ? EIO : errno));
        return false;
      }
      at += static_cast<std::uint64_t>(n);
      r.flushes.fetch_add(1);
      r.begin.store(at);
      begun.bytes.store(0);
    }
    return !is_last;
  }

  /// What was set aside goes to the file system. The program is told at its next write that this is
  /// full. A quota of btrfs that is used up lets nobody shorten a file.
  static bool give_room(kept_file& k) {
    if (k.aside < 0) return false;
    close(std::exchange(k.aside, -1));
    return true;
  }

  /// In the directory where the file had its name. -1: nothing can be set aside there.
  static int set_aside(int fd) {
    std::error_code failed;
    auto const path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), failed);
    if (failed) return -1;
    int const aside = open(path.parent_path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct stat a = {}, b = {};
    bool const is_good = aside >= 0 && fstat(aside, &a) == 0 && fstat(fd, &b) == 0 &&
                         a.st_dev == b.st_dev && fallocate(aside, 0, 0, aside_bytes) == 0;
    if (!is_good && aside >= 0) close(aside);
    return is_good ? aside : -1;
  }

  /// The open file of a process of ours, with the lease. False: it cannot be had.
  bool grant(unsigned i, std::uint64_t word) {
    kept_file& k = book_.of[i];
    core::ring& r = ring_of(i);
    auto const pid = static_cast<pid_t>(abi::pid_of(word));
    if (k.fd >= 0 || r.is_taken.load() != 0 || pid <= 0) return false;
    k = {-1, static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), -1,
         abi::with(word, lease_state::held)};
    if (k.process >= 0 && rights_of(pid) == rights_)
      k.fd = static_cast<int>(syscall(SYS_pidfd_getfd, k.process, abi::fd_of(word), 0));
    if (k.fd >= 0 && take_lease(i)) return true;
    drop(k);
    return false;
  }

  /// A file system that is slow or frozen holds up its own files alone.
  bool is_on_our_device(kept_file const& own, dev_t device) {
    bool const is_first = std::none_of(std::begin(book_.of), std::end(book_.of),
                                       [&](kept_file const& k) { return &k != &own && k.fd >= 0; });
    if (is_first) device_ = device;
    return device == device_;
  }

  bool is_fit(kept_file const& k, struct stat& st) {
    int const fd = k.fd;
    constexpr int unfit = O_DIRECT | O_SYNC | O_DSYNC | O_PATH | O_ASYNC;
    int const flags = fcntl(fd, F_GETFL);
    bool const is_file = flags >= 0 && (flags & unfit) == 0 && (flags & O_ACCMODE) != O_RDONLY &&
                         is_local(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool const is_free =
        fcntl(fd, F_GETLEASE) == F_UNLCK && fcntl(fd, F_GETOWN) == 0 && fcntl(fd, F_GETSIG) == 0;
    return is_file && is_free && !has_privilege(fd, st) && is_large(fd) &&
           has_left(fd, roomy_bytes) && end_of(fd) <= longest_file &&
           is_on_our_device(k, st.st_dev);
  }

  bool take_lease(unsigned i) {
    kept_file& k = book_.of[i];
    struct stat st = {};
    if (!is_fit(k, st) || fcntl(k.fd, F_SETLEASE, F_WRLCK) != 0) return false;
    epoll_event death = {EPOLLIN | EPOLLONESHOT, {}};
    k.aside = set_aside(k.fd);
    if (k.aside < 0 || epoll_ctl(deaths_, EPOLL_CTL_ADD, k.process, &death) != 0) {
      give_back(k);
      return false;
    }
    area_.begun[i].bytes.store(0);
    core::open(ring_of(i));
    area_.board.of[i].device.store(device_number(major(st.st_dev), minor(st.st_dev)));
    area_.board.of[i].inode.store(st.st_ino);
    return true;
  }

  static void give_back(kept_file const& k) {
    f_owner_ex const nobody = {F_OWNER_TID, 0};  // as of a new file
    fcntl(k.fd, F_SETLEASE, F_UNLCK);
    fcntl(k.fd, F_SETOWN_EX, &nobody);
  }

  static void drop(kept_file& k) {
    for (int* fd : {&k.fd, &k.process, &k.aside})
      if (int const open = std::exchange(*fd, -1); open >= 0) close(open);
  }

  /// The file has all of it, and is the program's alone. The row, which was `word`, says `s`.
  void release(unsigned i, std::uint64_t word, lease_state s) {
    kept_file& k = book_.of[i];
    core::shut(ring_of(i));
    if (ring_of(i).error.load() == 0) write_out(i);
    // A lock of a dead one ends with its last descriptor, so the lease does not end before.
    if (!has_ended(k.process)) give_back(k);
    drop(k);
    settle(i, word, s);
  }

  // --- the other process

  void start_follower() {
    auto const self = getpid();
    follower_ = static_cast<pid_t>(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
    if (follower_ == 0) follow(self);
  }

  void follow_follower() {
    if (follower_ > 0 && waitpid(follower_, nullptr, WNOHANG) == 0) return;
    if (int const was = std::exchange(book_.watched, -1); was >= 0) close(was);
    start_follower();
  }

  [[noreturn]] void follow(pid_t worker_pid) {
    auto const process = static_cast<int>(syscall(SYS_pidfd_open, worker_pid, 0));
    book_.watched = process;
    epoll_event death = {EPOLLIN, {}}, end = {EPOLLIN | EPOLLONESHOT, {}};
    end.data.fd = until_closed_;
    death.data.fd = process;
    if (process >= 0) epoll_ctl(deaths_, EPOLL_CTL_ADD, process, &death);
    if (epoll_ctl(deaths_, EPOLL_CTL_ADD, until_closed_, &end) != 0)
      epoll_ctl(deaths_, EPOLL_CTL_MOD, until_closed_, &end);
    std::uint32_t beats = 0;
    std::int64_t since_ns = steady_ns();
    while (process >= 0 && !has_ended(process)) {
      epoll_event one = {};
      if (epoll_wait(deaths_, &one, 1, static_cast<int>(beat_ns / 1'000'000)) > 0) {
        head_.bell.fetch_add(1);
        wake(&head_.bell);
      }
      std::uint32_t const now = book_.beats.load();
      if (now != beats) beats = now, since_ns = steady_ns();
      // It would hear of no lease. One that waits for a disk dies when that has answered.
      if (steady_ns() - since_ns > patience_ns) kill(worker_pid, SIGKILL);
    }
    // The kernel says so before anybody sees its end, unless it could not read what to say.
    std::uint32_t untold = static_cast<std::uint32_t>(worker_pid);
    if (process >= 0) head_.keeper.compare_exchange_strong(untold, abi::keeper_died);
    take_over();
  }

  /// Of one that is dead: what it had begun counts as far as it came.
  [[noreturn]] void take_over() {
    register_death(head_.keeper);
    auto const self = static_cast<std::uint32_t>(getpid());
    std::uint32_t dead = abi::keeper_died;
    if (!head_.keeper.compare_exchange_strong(dead, self)) _exit(0);
    close_unknown();
    book_.watched = -1;
    for (unsigned i = 0; i < abi::write_leases; ++i)
      if (book_.of[i].fd >= 0) adopt(i);
    run();
  }

  void adopt(unsigned i) {
    kept_file& k = book_.of[i];
    abi::write_begun& begun = area_.begun[i];
    fcntl(k.fd, F_SETOWN, getpid());
    if (begun.bytes.load() == 0) return;
    ring_of(i).begin.store(abi::begin_after(begun, end_of(k.fd)));
    begun.bytes.store(0);
    tell(i);
  }

  /// What the dead one had just opened, and written down nowhere.
  void close_unknown() {
    rlimit most = {};
    getrlimit(RLIMIT_NOFILE, &most);
    for (int fd = 3; fd < static_cast<int>(std::min<rlim_t>(most.rlim_cur, 1024)); ++fd) {
      bool is_known = fd == deaths_ || fd == until_closed_;
      for (kept_file const& k : book_.of)
        is_known |= k.fd == fd || k.process == fd || k.aside == fd;
      if (!is_known) close(fd);
    }
  }

  abi::ring_area& area_;
  abi::lease_head& head_;
  book& book_;
  int const deaths_, until_closed_;
  std::string const rights_;
  pid_t follower_ = 0;
  break_time breaks_;
  dev_t device_ = 0;
  std::int64_t tick_ns_ = 0;  // when all that waits is written; 0: nothing did
};

book& new_book() {
  void* const at =
      mmap(nullptr, sizeof(book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) _exit(1);
  auto* const known = static_cast<book*>(at);
  for (kept_file& k : known->of) k.fd = k.process = k.aside = -1;
  known->watched = -1;
  return *known;
}

/// No child has the memory of its parent's areas: it maps its own.
[[noreturn]] void keep_writes(std::string const& path, int until_closed) try {
  static auto const mapped = area_map<abi::ring_area>::open(path, geteuid());
  if (!mapped) _exit(1);
  abi::ring_area& area = as_shared(**mapped);
  madvise(&area, sizeof area, MADV_DOFORK);  // for the one that follows
  setsid();
  prctl(PR_SET_NAME, "sluice-writes");
  rlimit const no_limit = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &no_limit);
  (void)!chdir("/");
  int const kept = keep_only(until_closed);
  bell_of = &area.board.head;
  struct sigaction told = {};
  told.sa_handler = note_break;
  sigaction(SIGIO, &told, nullptr);
  sigaction(SIGCHLD, &told, nullptr);
  // They end when `sluice run` does, and not by what is sent to all of a job.
  sigset_t blocked;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGIO);
  sigdelset(&blocked, SIGCHLD);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  worker only(area, new_book(), epoll_create1(EPOLL_CLOEXEC), kept);
  only.begin();
} catch (...) {
  _exit(1);
}

bool may_trace_all() {
  std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> const have(cap_get_proc(),
                                                                           cap_free);
  cap_flag_value_t is_set = CAP_CLEAR;
  return have && cap_get_flag(have.get(), CAP_SYS_PTRACE, CAP_EFFECTIVE, &is_set) == 0 &&
         is_set == CAP_SET;
}

bool has_use_of_leases() {
  if (break_time_s() != 0) return true;
  on_stderr(
      "sluice: warning: small writes are made as they come: fs.lease-break-time is too short for "
      "strict\n");
  return false;
}

/// The keepers write for programs that may have lifted their own limit.
bool may_write_much() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return true;
  on_stderr(
      "sluice: warning: small writes are made as they come: files are limited (ulimit -Hf), and "
      "strict needs them not to be\n");
  return false;
}

/// Where only a parent may look into a process, nobody can take its descriptors.
bool may_take_descriptors() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope == 0 || (scope < 3 && may_trace_all())) return true;
  on_stderr(
      "sluice: warning: small writes are made as they come: kernel.yama.ptrace_scope is {}, and "
      "strict needs 0\n",
      scope);
  return false;
}

}  // namespace

std::unique_ptr<write_keeper> write_keeper::begin(foreign<abi::segment>& s,
                                                  std::string const& path) {
  bool const is_wanted = (s.head.areas.load() & abi::rings_beside) != 0;
  if (!is_wanted || !has_use_of_leases() || !may_write_much() || !may_take_descriptors())
    return nullptr;
  std::string const rings = segment::rings_path(path);
  auto area = area_map<abi::ring_area>::open(rings, geteuid());
  int ends[2];
  if (!area || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  descriptor theirs(ends[0]), ours(ends[1]);
  pid_t const pid = fork();
  if (pid == 0) {
    ours = descriptor();
    keep_writes(rings, theirs.get());
  }
  if (pid < 0) return nullptr;
  std::unique_ptr<write_keeper> begun(new write_keeper(std::move(area), pid, std::move(ours)));
  await_keeper(begun->head(), pid);
  return begun;
}

abi::lease_head& write_keeper::head() { return as_shared((*area_)->board.head); }

std::uint64_t write_keeper::waiting_bytes() {
  std::uint64_t sum = 0;
  for (auto& one : (*area_)->ring) {
    core::ring const& r = as_shared(one);
    if (r.error.load() == 0) sum += core::waiting_bytes(r);
  }
  return sum;
}

write_keeper::~write_keeper() {
  // The one that was started, or one that followed it.
  auto const is_at_work = [&] {
    std::uint32_t const keeper = head().keeper.load();
    return keeper != 0 && (keeper & abi::keeper_died) == 0 &&
           (*area_)->head.house.load() == static_cast<std::uint32_t>(pid_);
  };
  constexpr std::int64_t pause_ns = 500'000, most_ns = 60 * second_ns, most_idle_ns = 5 * second_ns;
  shutdown(house_.get(), SHUT_WR);
  std::int64_t const until_ns = steady_ns() + most_ns;
  for (std::int64_t worked_ns = steady_ns(); !has_ended(house_.get());) {
    std::int64_t const now_ns = steady_ns();
    if (is_at_work()) worked_ns = now_ns;
    bool const is_late = now_ns > until_ns || now_ns - worked_ns > most_idle_ns;
    if (std::uint64_t const bytes = is_late ? waiting_bytes() : 0; bytes != 0) {
      on_stderr(
          "sluice: warning: {} bytes of small writes wait for a file system that does not take "
          "them; process {} goes on trying\n",
          bytes, pid_);
      return;
    }
    // One of them lives, so the number is still that of their group.
    if (is_late) kill(-pid_, SIGKILL);
    sleep_until(now_ns + pause_ns);
  }
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sluice::keepers
