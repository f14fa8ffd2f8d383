// SPDX-License-Identifier: Apache-2.0
#include "journal/taker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/leave_descriptors.h"
#include "journal/processes.h"

namespace sluice::journal {

namespace {

constexpr int start_ms = 1000;
constexpr char yes = 1, no = 0;

struct question {
  std::uint32_t pid;
  uid_t user;
  int fd;
  taker::kind wanted;
};

/// `wait_ms` below 0: for ever.
bool is_told(int socket, int wait_ms) {
  pollfd p = {socket, POLLIN, 0};
  int found = 0;
  while ((found = poll(&p, 1, wait_ms)) < 0 && errno == EINTR) {
  }
  return found > 0;
}

/// `fd` below 0: none.
bool tell(int socket, int fd) {
  char word = fd < 0 ? no : yes;
  iovec text = {&word, sizeof word};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  msghdr m = {};
  m.msg_iov = &text;
  m.msg_iovlen = 1;
  if (fd >= 0) {
    m.msg_control = room;
    m.msg_controllen = sizeof room;
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(socket, &m, MSG_NOSIGNAL) == 1;
}

/// False: nobody is there to tell anything.
bool hear(int socket, descriptor& fd) {
  char word = no;
  iovec text = {&word, sizeof word};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr m = {};
  m.msg_iov = &text;
  m.msg_iovlen = 1;
  m.msg_control = room;
  m.msg_controllen = sizeof room;
  if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) return false;
  int got = -1;
  if (cmsghdr const* const c = CMSG_FIRSTHDR(&m); c != nullptr && c->cmsg_type == SCM_RIGHTS)
    std::memcpy(&got, CMSG_DATA(c), sizeof got);
  fd = descriptor(got);
  return true;
}

/// Of the thread.
class looker {
 public:
  descriptor take(question const& q) {
    descriptor theirs = from_.take(q.pid, q.user, q.fd);
    if (!theirs) return {};
    bool const is_it =
        q.wanted == taker::kind::eventfd ? is_eventfd(theirs.get()) : is_mounted_here(theirs.get());
    return is_it ? std::move(theirs) : descriptor();
  }

 private:
  static bool is_eventfd(int fd) {
    char name[64];
    ssize_t const n =
        readlink(fmt::format("/proc/thread-self/fd/{}", fd).c_str(), name, sizeof name);
    return n > 0 && std::string(name, static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
  }

  /// A device of its own means the same file system as long as it is there. The numbers of others
  /// are given again.
  bool is_mounted_here(int fd) {
    struct statx x = {};
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) != 0) return false;
    dev_t const device = makedev(x.stx_dev_major, x.stx_dev_minor);
    if (devices_.contains(device)) return true;
    if (is_in_table(device)) {
      if (x.stx_dev_major != 0) devices_.insert(device);
      return true;
    }
    struct statfs fs = {};  // its subvolumes have numbers that no table has
    return fstatfs(fd, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
  }

  static bool is_in_table(dev_t device) {
    std::string const wanted = fmt::format("{}:{}", major(device), minor(device));
    std::ifstream in("/proc/thread-self/mountinfo");
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string id, parent, has, type;
      words >> id >> parent >> has;
      if (has != wanted) continue;
      for (std::string word; words >> word && word != "-";) {
      }
      return words >> type && !type.starts_with("fuse");
    }
    return false;
  }

  processes from_;
  std::set<dev_t> devices_;
};

void serve(int socket) {
  if (!leave_descriptors_but(socket) || !tell(socket, -1)) return;
  looker looks;
  question q;
  while (recv(socket, &q, sizeof q, 0) == sizeof q) {
    descriptor const theirs = looks.take(q);
    if (!tell(socket, theirs.get())) break;
  }
  close(socket);
}

/// No signal of the process is for it.
bool start(std::function<void()> task) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_started = true;
  try {
    std::thread(std::move(task)).detach();
  } catch (std::system_error const&) {
    is_started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started;
}

}  // namespace

bool taker::may_ask(uid_t user) {
  std::erase_if(stuck_, [](stuck const& s) { return s.is_back->load(); });
  auto const of_him =
      std::count_if(stuck_.begin(), stuck_.end(), [&](stuck const& s) { return s.user == user; });
  return stuck_.size() < most_stuck && static_cast<std::size_t>(of_him) < most_stuck_of;
}

bool taker::has_thread() {
  if (to_) return true;
  int both[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0) return false;
  descriptor ours(both[0]), its(both[1]);
  auto const is_back = std::make_shared<std::atomic<bool>>(false);
  bool const is_started = start([socket = both[1], is_back] {
    serve(socket);
    is_back->store(true);
  });
  // Until it says so it shares our descriptors, and its end may not go.
  descriptor none;
  if (!is_started || !is_told(ours.get(), start_ms) || !hear(ours.get(), none)) return false;
  to_ = std::move(ours);
  is_back_ = is_back;
  return true;
}

descriptor taker::take(std::uint32_t pid, uid_t user, int fd, kind wanted) {
  if (!may_ask(user) || !has_thread()) return {};
  question const q = {pid, user, fd, wanted};
  descriptor out;
  bool const is_asked = send(to_.get(), &q, sizeof q, MSG_NOSIGNAL) == sizeof q;
  if (is_asked && is_told(to_.get(), patience_ms) && hear(to_.get(), out)) return out;
  to_ = descriptor();
  stuck_.push_back({user, is_back_});
  return {};
}

}  // namespace sluice::journal
