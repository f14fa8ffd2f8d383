// SPDX-License-Identifier: Apache-2.0
#include "segment/tidier.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/keep_only.h"

namespace sluice::segment {

namespace {

struct order_words {
  uid_t owner = 0;
  tidy_task task;
  char dir[PATH_MAX] = {};
};
struct answer_words {
  bool is_lost = false;  // nothing was done, or nobody can say what
  tidied done;
  char dir[PATH_MAX] = {};
};

template <class Words>
bool send_words(int socket, Words const& words, int flags) {
  return send(socket, &words, sizeof words, flags | MSG_NOSIGNAL) == ssize_t(sizeof words);
}

/// False: there are none now; `is_over`: nor will there be.
template <class Words>
bool take_words(int socket, Words& words, bool& is_over) {
  ssize_t const n = recv(socket, &words, sizeof words, MSG_DONTWAIT);
  is_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  return n == ssize_t(sizeof words);
}

/// The process.
class server {
 public:
  explicit server(int socket) : socket_(socket) {
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, nullptr);
    ended_ = descriptor(signalfd(-1, &ended, SFD_NONBLOCK | SFD_CLOEXEC));
  }

  /// Until its daemon is gone. Children that wait for a lock go on without it.
  void serve() {
    while (!is_over_) {
      pollfd each[] = {{socket_, POLLIN, 0}, {ended_.get(), POLLIN, 0}};
      poll(each, 2, -1);
      hear();
      bury();
    }
  }

 private:
  void hear() {
    order_words order;
    while (take_words(socket_, order, is_over_)) {
      waiting_[order.owner].push_back(order);
      begin(order.owner);
    }
  }

  void begin(uid_t owner) {
    auto const mine = waiting_.find(owner);
    if (mine == waiting_.end() || busy_.contains(owner)) return;
    order_words const order = mine->second.front();
    mine->second.pop_front();
    if (mine->second.empty()) waiting_.erase(mine);
    answer_words answer;
    std::memcpy(answer.dir, order.dir, sizeof answer.dir);
    pid_t const pid = fork();
    if (pid == 0) {
      answer.done = tidy(order.dir, order.task);
      _exit(send_words(socket_, answer, 0) ? 0 : 1);
    }
    if (pid > 0)
      busy_[owner] = {pid, order.dir};
    else
      tell_lost(order.dir);
  }

  /// Who looks again asks again.
  void tell_lost(std::string const& dir) const {
    answer_words answer;
    answer.is_lost = true;
    dir.copy(answer.dir, sizeof answer.dir - 1);
    send_words(socket_, answer, 0);
  }

  void bury() {
    signalfd_siginfo some[16];
    while (read(ended_.get(), some, sizeof some) > 0) continue;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      auto const at = std::find_if(busy_.begin(), busy_.end(),
                                   [pid](auto const& one) { return one.second.pid == pid; });
      if (at == busy_.end()) continue;
      uid_t const owner = at->first;
      if (status != 0) tell_lost(at->second.dir);
      busy_.erase(at);
      begin(owner);
    }
  }

  int socket_;
  descriptor ended_;
  bool is_over_ = false;
  std::map<uid_t, std::deque<order_words>> waiting_;
  struct child {
    pid_t pid;
    std::string dir;
  };
  std::map<uid_t, child> busy_;
};

[[noreturn]] void be_server(int socket, std::function<void()> const& settle) {
  prctl(PR_SET_NAME, "sluiced-tidy");
  socket = keep_only(socket);  // what a child holds stays open while it waits for a lock
  try {
    settle();
    server(socket).serve();
  } catch (std::exception const&) {
    _exit(exit_sluice);
  }
  _exit(0);
}

}  // namespace

tidier::tidier(std::function<void()> const& settle) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw sluice_error(std::string("socketpair: ") + std::strerror(errno));
  descriptor mine(ends[0]), its(ends[1]);
  pid_ = fork();
  if (pid_ == 0) {
    mine = descriptor();
    be_server(its.release(), settle);
  }
  if (pid_ < 0) throw sluice_error(std::string("fork: ") + std::strerror(errno));
  socket_ = std::move(mine);
}

tidier::~tidier() {
  socket_ = descriptor();  // its end
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

bool tidier::ask(std::string const& dir, uid_t owner, tidy_task const& task, std::int64_t now_ns) {
  order_words order;
  auto const at = folders_.find(dir);
  bool const is_asked = at != folders_.end() && at->second.asked_ns != 0;
  if (is_asked || dir.size() >= sizeof order.dir) return false;
  order.owner = owner;
  order.task = task;
  dir.copy(order.dir, dir.size());
  if (!socket_)
    done_.push_back({dir, tidy(dir, task)});
  else if (!send_words(socket_.get(), order, MSG_DONTWAIT))
    return false;  // its queue is full: who looks again asks again
  folders_[dir] = {.asked_ns = now_ns};
  return true;
}

std::vector<tidier::answer> tidier::take() {
  std::vector<answer> out = std::exchange(done_, {});
  answer_words words;
  bool is_over = false;
  while (socket_ && take_words(socket_.get(), words, is_over)) {
    std::string const dir(words.dir, strnlen(words.dir, sizeof words.dir));
    if (words.is_lost)
      folders_.erase(dir);
    else
      out.push_back({dir, words.done});
  }
  // A child of it that waits for a lock keeps the socket open.
  is_over = is_over || (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_);
  if (is_over) throw sluice_error("the process that tidies the files of jobs has ended");
  for (auto const& a : out) {
    if (a.done.is_leased)
      folders_[a.dir] = {.is_leased = true};
    else
      folders_.erase(a.dir);
  }
  return out;
}

void tidier::wait(std::int64_t since_ns, std::int64_t most_ns) const {
  bool const is_asked = std::any_of(folders_.begin(), folders_.end(), [since_ns](auto const& one) {
    return one.second.asked_ns >= since_ns;
  });
  pollfd one = {socket_.get(), POLLIN, 0};
  if (socket_ && is_asked) poll(&one, 1, static_cast<int>(most_ns / 1'000'000));
}

bool tidier::is_held_up(std::string const& dir, std::int64_t now_ns) const {
  auto const at = folders_.find(dir);
  return at != folders_.end() && (at->second.is_leased || is_late(at->second, now_ns));
}

std::vector<std::string> tidier::take_late(std::int64_t now_ns) {
  std::vector<std::string> out;
  for (auto& [dir, s] : folders_)
    if (is_late(s, now_ns) && !std::exchange(s.is_told, true)) out.push_back(dir);
  return out;
}

}  // namespace sluice::segment
