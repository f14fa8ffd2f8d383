// SPDX-License-Identifier: Apache-2.0
// The serving side: one thread, an epoll of its own that the daemon's loop polls as one
// descriptor. What stays true: nothing blocks, no client can hold more than its place, its packet
// and five idle seconds; the socket file belongs to whoever holds the lock beside it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "local/address.h"
#include "local/attachment.h"
#include "local/local.h"
#include "local/places.h"
#include "local/request.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace sluice::local {

namespace {

constexpr char const* no_place_text = "too many connections at once: try again";
constexpr std::int64_t idle_first_ns = 5'000'000'000, idle_ns = 60'000'000'000;

struct client {
  descriptor socket;
  descriptor pidfd;
  peer who;
  std::int64_t heard_ns;
  bool has_asked = false;
  bool is_waiting = false;  // for reply()
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

/// False when the peer is gone or the kernel does not say who it is.
bool identify(client& c) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (getsockopt(c.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  int pidfd = -1;
  size = sizeof pidfd;
  if (getsockopt(c.socket.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
    c.pidfd = descriptor(pidfd);
  c.who = {who.uid, who.gid, who.pid, c.pidfd.get(), groups_of(c.socket.get()), 0, false};
  return true;
}

class seqpacket_server final : public server {
 public:
  seqpacket_server(std::string const& path, unsigned mode, handler h)
      : path_(path), handler_(std::move(h)), buffer_(most_bytes) {
    take_path();
    listen(mode);
    epoll_ = descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) fail("epoll");
    if (!watch(listener_.get())) fail("epoll");
    spare();
  }

  ~seqpacket_server() override { unlink(path_.c_str()); }

  int fd() const override { return epoll_.get(); }

  void serve(std::int64_t now_ns) override {
    std::array<epoll_event, 64> events;
    int const count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      int const fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener_.get())
        admit(now_ns);
      else if (auto const at = clients_.find(fd); at != clients_.end() && !hear(at->second, now_ns))
        clients_.erase(at);
    }
    std::erase_if(clients_, [&](auto const& entry) { return now_ns >= end_of(entry.second); });
  }

  std::int64_t due_ns() const override {
    std::int64_t due = std::numeric_limits<std::int64_t>::max();
    for (auto const& [fd, c] : clients_) due = std::min(due, end_of(c));
    return due;
  }

  usage in_use() const override { return {clients_.size(), refused_}; }

  void reply(std::uint64_t ticket, std::string const& text) override {
    auto const at = std::find_if(clients_.begin(), clients_.end(), [&](auto const& entry) {
      return entry.second.who.ticket == ticket && entry.second.is_waiting;
    });
    if (at == clients_.end()) return;
    at->second.is_waiting = false;
    if (!tell(at->second, text)) clients_.erase(at);
  }

 private:
  static std::int64_t end_of(client const& c) {
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

  /// Without a free descriptor a caller could be neither accepted nor refused, and the listener
  /// would stay readable for ever: the spare one makes room to hang up.
  bool shed() {
    if ((errno != EMFILE && errno != ENFILE) || !spare_) return false;
    { descriptor const closed = std::move(spare_); }
    { descriptor const refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
    spare();
    return true;
  }

  void admit(std::int64_t now_ns) {
    for (std::size_t i = 0; i < most_places; ++i) {
      client c = {
          descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
          {},
          {},
          now_ns};
      if (!c.socket && shed()) continue;
      if (!c.socket) return;
      if (!identify(c)) continue;
      if (!make_place(c.who.uid)) {
        refuse(c);
        continue;
      }
      c.who.ticket = ++tickets_;
      if (watch(c.socket.get())) clients_.emplace(c.socket.get(), std::move(c));
    }
  }

  /// False: there is none for this user.
  bool make_place(uid_t uid) {
    std::vector<held_place> held;
    std::vector<int> sockets;
    for (auto const& [fd, c] : clients_) {
      held.push_back({c.who.uid, c.heard_ns, c.is_waiting});
      sockets.push_back(fd);
    }
    place_verdict const verdict = place_for(uid, held);
    if (verdict.leaves) {
      auto const at = clients_.find(sockets[*verdict.leaves]);
      refuse(at->second);
      clients_.erase(at);
    }
    return verdict.may_enter;
  }

  void refuse(client const& c) {
    ++refused_;
    tell(c, refusal_text(no_place_text, exit_sluice));
  }

  /// One request. False: the client is to be forgotten.
  bool hear(client& c, std::int64_t now_ns) {
    received const packet = receive_packet(c.socket.get(), buffer_, may_attach(c.who));
    ssize_t const got = packet.bytes;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || c.is_waiting) return false;  // one question at a time
    c.heard_ns = now_ns;
    c.has_asked = true;
    if (packet.shed || static_cast<std::size_t>(got) > buffer_.size())
      return tell(c, refusal_text("the request is too large", exit_usage));
    if (!packet.attached) return answer(c, buffer_.data(), static_cast<std::size_t>(got));
    // Reading much takes time that all others wait.
    std::optional<std::string> const text = read_attached(packet.attached);
    if (!text) return tell(c, refusal_text("the request is too large", exit_usage));
    return answer(c, text->data(), text->size());
  }

  static bool may_attach(peer const& who) { return who.uid == 0 || who.uid == geteuid(); }

  bool answer(client& c, char const* bytes, std::size_t size) const {
    std::size_t const most = may_attach(c.who) ? most_attached_bytes : most_bytes;
    std::string const text = answer_text(handler_, c.who, bytes, size, most);
    c.is_waiting = text.empty();
    return c.is_waiting || tell(c, text);
  }

  /// A client that does not read its answers is not waited for.
  static bool tell(client const& c, std::string const& text) {
    return send_text(c.socket.get(), text, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }

  std::string path_;
  handler handler_;
  std::vector<char> buffer_;
  descriptor lock_, listener_, epoll_, spare_;
  std::map<int, client> clients_;
  std::uint64_t tickets_ = 0, refused_ = 0;
};

}  // namespace

std::unique_ptr<server> server::open(std::string const& path, unsigned mode, handler h) {
  return std::make_unique<seqpacket_server>(path, mode, std::move(h));
}

}  // namespace sluice::local
