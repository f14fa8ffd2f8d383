// SPDX-License-Identifier: Apache-2.0
// The serving side: one thread, an epoll of its own that the daemon's loop polls as one
// descriptor. What stays true: nothing blocks, no client can hold more than its place, its packet,
// one answer and five idle seconds; the socket file belongs to whoever holds the lock beside it. No
// stranger's connection is closed but by `closer`, because of the descriptors that may lie in it.
// An answer that a stranger does not read is memory of ours, which our end would leave to him: he
// keeps his place until it is read, or gone with his end.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/process_mark.h"
#include "local/address.h"
#include "local/attachment.h"
#include "local/closer.h"
#include "local/local.h"
#include "local/places.h"
#include "local/request.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16
#endif

namespace sluice::local {

namespace {

constexpr char const* no_place_text =
    "too many connections at once of this user or of all: end some `sluice` commands, or try again";
constexpr std::int64_t idle_first_ns = 5'000'000'000, idle_ns = 60'000'000'000;
constexpr std::int64_t mute_ns = 1'000'000'000, look_again_ns = 1'000'000'000;
peer const nobody_yet = {uid_t(-1), gid_t(-1), 0, -1};  // a stranger until the kernel says more

struct client {
  descriptor socket;
  descriptor pidfd;
  peer who;
  std::int64_t heard_ns;
  bool has_asked = false;
  bool is_waiting = false;  // for reply()
  bool is_left = false;     // not heard any more, and has an answer to read
};

[[noreturn]] void fail(std::string const& what) {
  throw sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::vector<gid_t> groups_of(int socket) {
  std::vector<gid_t> groups(64);
  for (int tries = 0; tries < 2; ++tries) {
    socklen_t size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    bool const good = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0;
    if (!good && errno != ERANGE) return {};
    groups.resize(size / sizeof(gid_t));
    if (good) return groups;
  }
  return {};
}

/// Whether senders may attach descriptors at all; kernels before 6.16 let everybody.
void pass_rights(int socket, bool yes) {
  int const value = yes ? 1 : 0;
  setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof value);
}

/// False when the peer is gone or the kernel does not say who it is.
bool identify(client& c) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (getsockopt(c.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  int pidfd = -1;
  size = sizeof pidfd;
  bool is_over = false;
  if (getsockopt(c.socket.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0) {
    // Before 6.5 it is opened by its number, as soon as it has come. Later kernels refuse for one
    // that has ended, until some give that one too.
    is_over = errno != ENOPROTOOPT;
    if (!is_over) pidfd = static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0));
    is_over = is_over || (pidfd < 0 && errno == ESRCH);
  }
  c.pidfd = descriptor(pidfd);
  c.who = {who.uid, who.gid, who.pid, c.pidfd.get(), groups_of(c.socket.get()), 0};
  c.who.is_over = is_over;
  return true;
}

bool may_attach(peer const& who) { return who.uid == 0 || who.uid == geteuid(); }

bool has_unread(client const& c) {
  int bytes = 0;
  return ioctl(c.socket.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

class seqpacket_server final : public server {
 public:
  seqpacket_server(std::string const& path, unsigned mode, handler h, owner_lookup owner_of)
      : path_(path), handler_(std::move(h)), owner_of_(std::move(owner_of)), buffer_(most_bytes) {
    take_path();
    listen(mode);
    epoll_ = descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) fail("epoll");
    if (!watch(listener_.get())) fail("epoll");
    spare();
  }

  ~seqpacket_server() override {
    unlink(path_.c_str());
    while (!clients_.empty()) forget(clients_.begin());
    shutdown(listener_.get(), SHUT_RDWR);  // nobody can be added to its queue
    while (descriptor caller = accept()) closer_.close(std::move(caller));
  }

  int fd() const override { return epoll_.get(); }

  void serve(std::int64_t now_ns) override {
    if (muted_until_ns_ != 0 && now_ns >= muted_until_ns_) unmute(now_ns);
    std::array<epoll_event, 64> events;
    int const count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      int const fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener_.get())
        admit(now_ns);
      else if (auto const at = clients_.find(fd); at != clients_.end() && !hear(at->second, now_ns))
        leave(at, now_ns);
    }
    for (auto at = clients_.begin(); at != clients_.end();)
      at = now_ns >= end_of(at->second) ? leave(at, now_ns) : std::next(at);
  }

  std::int64_t due_ns() const override {
    std::int64_t due = std::numeric_limits<std::int64_t>::max();
    if (muted_until_ns_ != 0) due = muted_until_ns_;
    for (auto const& [fd, c] : clients_) due = std::min(due, end_of(c));
    return due;
  }

  usage in_use() const override { return {clients_.size(), refused_}; }

  bool is_waiting(std::uint64_t ticket) const override {
    auto const of_it = [ticket](auto const& entry) { return waits(entry.second, ticket); };
    return std::any_of(clients_.begin(), clients_.end(), of_it);
  }

  void reply(std::uint64_t ticket, std::string const& text) override {
    auto const of_it = [ticket](auto const& entry) { return waits(entry.second, ticket); };
    auto const at = std::find_if(clients_.begin(), clients_.end(), of_it);
    if (at == clients_.end()) return;
    at->second.is_waiting = false;
    if (!tell(at->second, text)) leave(at, at->second.heard_ns);
  }

 private:
  using place = std::map<int, client>::iterator;

  static bool waits(client const& c, std::uint64_t ticket) {
    return c.who.ticket == ticket && c.is_waiting;
  }

  static std::int64_t end_of(client const& c) {
    if (c.is_left) return c.heard_ns + look_again_ns;
    return c.heard_ns + (c.has_asked ? idle_ns : idle_first_ns);
  }

  void take_path() {
    std::string const beside = path_ + ".lock";
    lock_ = descriptor(::open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_) fail(beside);
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw sluice_error(fmt::format("{}: another sluiced serves it", path_));
      fail(beside);
    }
  }

  void listen(unsigned mode) {
    address const at(path_);
    listener_ = descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) fail("socket");
    pass_rights(listener_.get(), false);  // also of who is not accepted yet
    if (unlink(path_.c_str()) != 0 && errno != ENOENT) fail(path_);
    mode_t const before = umask(0177);
    bool const bound = bind(listener_.get(), at.get(), sizeof at.name) == 0;
    umask(before);
    // Others may connect only when the mode is right.
    if (!bound || chmod(path_.c_str(), mode) != 0 || ::listen(listener_.get(), 64) != 0)
      fail(path_);
  }

  bool watch(int fd) {
    epoll_event e = {};
    e.events = EPOLLIN;
    e.data.fd = fd;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) == 0;
  }

  void spare() { spare_ = descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  descriptor accept() const {
    return descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  /// Without a free descriptor a caller could be neither accepted nor refused, and the listener
  /// would stay readable for ever: the spare one makes room to hang up. False: nobody is let in
  /// now.
  bool shed(std::int64_t now_ns) {
    if (errno != EMFILE && errno != ENFILE) return false;
    if (!spare_) return mute(now_ns);
    { descriptor const closed = std::move(spare_); }
    if (descriptor caller = accept()) closer_.close(std::move(caller));
    spare();
    return true;
  }

  /// Whoever comes waits at the listener.
  bool mute(std::int64_t now_ns) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
    muted_until_ns_ = now_ns + mute_ns;
    return false;
  }

  void unmute(std::int64_t now_ns) {
    closer_.hand_over();
    if (!spare_) spare();
    bool const may_hear = !closer_.is_full() && spare_ && watch(listener_.get());
    muted_until_ns_ = may_hear ? 0 : now_ns + mute_ns;
  }

  void admit(std::int64_t now_ns) {
    for (std::size_t i = 0; i < most_places; ++i) {
      if (closer_.is_full()) {
        mute(now_ns);
        return;
      }
      client c = {accept(), {}, nobody_yet, now_ns};
      if (!c.socket && shed(now_ns)) continue;
      if (!c.socket) return;
      if (!let_in(c)) close(std::move(c));
    }
  }

  bool let_in(client& c) {
    if (!identify(c)) return false;
    if (!make_place(c.who.uid)) {
      refuse(c);
      return false;
    }
    if (may_attach(c.who)) pass_rights(c.socket.get(), true);
    c.who.ticket = ++tickets_;
    int const fd = c.socket.get();
    if (!watch(fd)) return false;
    clients_.emplace(fd, std::move(c));
    return true;
  }

  void close(client c) {
    if (!may_attach(c.who)) closer_.close(std::move(c.socket));
  }

  place forget(place at) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->first, nullptr);  // it may stay open
    close(std::move(at->second));
    return clients_.erase(at);
  }

  place leave(place at, std::int64_t now_ns) {
    client& c = at->second;
    if (may_attach(c.who) || !has_unread(c)) return forget(at);
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->first, nullptr);
    c.is_left = true;
    c.heard_ns = now_ns;
    return std::next(at);
  }

  /// False: there is none for this user.
  bool make_place(uid_t uid) {
    std::vector<held_place> held;
    std::vector<int> sockets;
    for (auto const& [fd, c] : clients_) {
      held.push_back({owner(c.who.uid), c.heard_ns, c.is_waiting || c.is_left});
      sockets.push_back(fd);
    }
    place_verdict const verdict = place_for(owner(uid), held);
    if (verdict.leaves) {
      auto const at = clients_.find(sockets[*verdict.leaves]);
      if (!at->second.is_left) refuse(at->second);
      forget(at);
    }
    return verdict.may_enter;
  }

  uid_t owner(uid_t uid) const { return owner_by(owner_of_, uid); }

  void refuse(client const& c) {
    ++refused_;
    tell(c, refusal_text(no_place_text, exit_full));
  }

  /// One request. False: the client is to be forgotten.
  bool hear(client& c, std::int64_t now_ns) {
    if (!may_attach(c.who) && has_unread(c)) return false;
    received const packet = receive_packet(c.socket.get(), buffer_, may_attach(c.who));
    ssize_t const got = packet.bytes;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || c.is_waiting) return false;  // one question at a time
    c.heard_ns = now_ns;
    c.has_asked = true;
    bool const stays = may_attach(c.who) || !packet.shed;  // else it can be read no further
    if (packet.shed || static_cast<std::size_t>(got) > buffer_.size())
      return tell(c, refusal_text("the request is too large", exit_usage)) && stays;
    if (!packet.attached) return answer(c, buffer_.data(), static_cast<std::size_t>(got));
    // Reading much takes time that all others wait.
    std::optional<std::string> const text = read_attached(packet.attached);
    if (!text) return tell(c, refusal_text("the request is too large", exit_usage));
    return answer(c, text->data(), text->size());
  }

  bool answer(client& c, char const* bytes, std::size_t size) const {
    std::size_t const most = may_attach(c.who) ? most_attached_bytes : most_bytes;
    std::string const text = answer_text(handler_, c.who, bytes, size, most);
    c.is_waiting = text.empty();
    return c.is_waiting || tell(c, text);
  }

  /// A client that does not read its answers is not waited for. A stranger gets no file of ours: he
  /// could keep any number.
  static bool tell(client const& c, std::string const& text) {
    bool const fits = text.size() <= most_bytes || may_attach(c.who);
    return send_text(c.socket.get(),
                     fits ? text : refusal_text("the answer is larger than a packet", exit_sluice),
                     MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }

  std::string path_;
  handler handler_;
  owner_lookup owner_of_;
  std::vector<char> buffer_;
  descriptor lock_, listener_, epoll_, spare_;
  std::map<int, client> clients_;
  closer closer_;
  std::int64_t muted_until_ns_ = 0;  // 0: whoever comes is heard
  std::uint64_t tickets_ = 0, refused_ = 0;
};

}  // namespace

std::unique_ptr<server> server::open(std::string const& path, unsigned mode, handler h,
                                     owner_lookup owner_of) {
  return std::make_unique<seqpacket_server>(path, mode, std::move(h), std::move(owner_of));
}

bool has_ended(peer const& who) {
  return who.pidfd < 0 ? who.is_over : sluice::has_ended(who.pidfd);
}

}  // namespace sluice::local
