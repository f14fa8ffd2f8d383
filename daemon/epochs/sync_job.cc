// SPDX-License-Identifier: Apache-2.0
#include "epochs/sync_job.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <new>
#include <utility>

#include "abi/order_slot.h"
#include "base/clock.h"
#include "base/rights.h"
#include "base/sync.h"

namespace sluice::epochs {

namespace {

using slot_state = abi::order_slot_state;

void doze() {
  timespec const t = {0, 1'000'000};
  nanosleep(&t, nullptr);
}

/// 0, or the error number; EAGAIN: nothing came of it.
int ask_log(abi::order_area& a, std::int64_t until_ns) {
  auto const pid = static_cast<std::uint32_t>(getpid());
  while (!heart_beats(a.head, steady_ns())) {
    if (steady_ns() >= until_ns) return ENOTCONN;
    doze();
  }
  std::uint32_t user = 0;
  bool must_wake = false;
  abi::order_slot* const s = claim_slot(a, pid, user);
  constexpr auto kind = static_cast<std::uint32_t>(abi::order_request::sync_all);
  if (s == nullptr || !post(a, *s, user, {kind, pid, -1, 0, 0}, steady_ns(), must_wake))
    return EAGAIN;
  if (must_wake) syscall(SYS_futex, &a.head.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (;; doze()) {
    std::uint32_t const seen = s->word.load();
    if (seen == word_of(user, slot_state::done)) {
      int const result = s->result.load();
      bool const is_ours = swap(*s, user, slot_state::done, slot_state::free);
      return !is_ours || result == abi::go_native ? EAGAIN : result;
    }
    if (seen >> 3 != user || !abi::is_open(seen)) return EAGAIN;
    std::int64_t const now_ns = steady_ns();
    bool const is_hopeless = now_ns >= until_ns || !heart_beats(a.head, now_ns);
    if (is_hopeless && leave(*s, user, seen)) return ENOTCONN;
  }
}

/// Of a job whose order area is open nothing is left in its journal.
int empty_log(int area, std::int64_t until_ns) {
  constexpr std::size_t bytes = sizeof(abi::order_area);
  struct stat st = {};
  if (fstat(area, &st) != 0) return errno;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
  if (at == MAP_FAILED) return errno;
  auto& a = *static_cast<abi::order_area*>(at);
  int error = EINVAL;
  if (refuse_reason(a, static_cast<std::uint64_t>(st.st_size)) == nullptr) {
    bool const has_journal = a.head.generation.load() != 0;
    error = has_journal ? EAGAIN : 0;
    for (int i = 0; i < 10 && error == EAGAIN; ++i) error = ask_log(a, until_ns);
  }
  munmap(at, bytes);
  return error;
}

/// The area is held no longer than this takes: a root may hang.
int empty_log(char const* path, std::int64_t until_ns) {
  int const fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  int const error = empty_log(fd, until_ns);
  close(fd);
  return error;
}

int sync_root(char const* path) {
  int const fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno;
  int const error = sync_file_system(fd);
  close(fd);
  return error;
}

}  // namespace

sync_job::~sync_job() {
  if (pid_ > 0) processes_.end(pid_);
  if (result_ != nullptr) munmap(result_, sizeof *result_);
}

bool sync_job::begin(uid_t uid, std::string const& order, std::vector<std::string> const& roots,
                     std::int64_t patience_ns, std::int64_t now_ns) {
  if (result_ == nullptr) {
    void* const at =
        mmap(nullptr, sizeof *result_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    result_ = new (at) std::atomic<int>;
  }
  result_->store(-1);
  until_ns_ = now_ns + patience_ns;
  pid_t const self = getpid();
  // The area is in a folder that only root may enter, and roots may be in folders of users.
  with_rights([&] {
    pid_ = fork();
    if (pid_ == 0) work(order, roots, self);
  });
  if (pid_ > 0) processes_.add(pid_, uid);
  return pid_ > 0;
}

void sync_job::work(std::string const& order, std::vector<std::string> const& roots, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  close_range(3, ~0u, 0);
  signal(SIGBUS, SIG_DFL);
  int error = empty_log(order.c_str(), until_ns_);
  for (std::string const& root : roots)
    if (error == 0) error = sync_root(root.c_str());
  result_->store(error);
  _exit(0);
}

int sync_job::look(std::int64_t now_ns) {
  bool const has_ended = processes_.has_ended(pid_);
  if (!has_ended && now_ns < until_ns_) return -1;
  if (!has_ended) {
    processes_.end(std::exchange(pid_, 0));
    munmap(std::exchange(result_, nullptr), sizeof *result_);  // it may still write there
    return ETIMEDOUT;
  }
  pid_ = 0;
  int const error = result_->load();
  return error < 0 ? EIO : error;  // it was killed
}

}  // namespace sluice::epochs
