// SPDX-License-Identifier: Apache-2.0
#include "runtime/http_peer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace sluice::runtime {

namespace {

constexpr timeval patience = {1, 0};

/// An address of either family, as the kernel's look-up wants it.
struct end_point {
  std::uint8_t family = AF_UNSPEC;
  std::uint32_t words[4] = {};
  std::uint16_t port = 0;  // network order
  std::string text;
};

std::optional<end_point> end_of(int socket, decltype(getpeername)* which) {
  sockaddr_storage at = {};
  socklen_t size = sizeof at;
  if (which(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return std::nullopt;
  end_point out;
  out.family = static_cast<std::uint8_t>(at.ss_family);
  char text[INET6_ADDRSTRLEN] = {};
  if (at.ss_family == AF_INET) {
    auto const& in = reinterpret_cast<sockaddr_in const&>(at);
    std::memcpy(out.words, &in.sin_addr, sizeof in.sin_addr);
    out.port = in.sin_port;
  } else if (at.ss_family == AF_INET6) {
    auto const& in = reinterpret_cast<sockaddr_in6 const&>(at);
    std::memcpy(out.words, &in.sin6_addr, sizeof in.sin6_addr);
    out.port = in.sin6_port;
  } else {
    return std::nullopt;
  }
  if (inet_ntop(out.family, out.words, text, sizeof text) != nullptr) out.text = text;
  return out;
}

/// A connection of this machine with itself has both ends here.
bool is_of_this_machine(end_point const& near, end_point const& far) {
  return near.text == far.text || far.text.starts_with("127.") || far.text == "::1";
}

struct diag_question {
  nlmsghdr head;
  inet_diag_req_v2 what;
};

diag_question question_for(end_point const& near, end_point const& far) {
  diag_question q = {};
  q.head.nlmsg_len = sizeof q;
  q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  q.head.nlmsg_flags = NLM_F_REQUEST;
  q.what.sdiag_family = far.family;
  q.what.sdiag_protocol = IPPROTO_TCP;
  q.what.idiag_states = ~0u;
  q.what.id.idiag_sport = far.port;
  q.what.id.idiag_dport = near.port;
  std::memcpy(q.what.id.idiag_src, far.words, sizeof far.words);
  std::memcpy(q.what.id.idiag_dst, near.words, sizeof near.words);
  std::fill(std::begin(q.what.id.idiag_cookie), std::end(q.what.id.idiag_cookie),
            INET_DIAG_NOCOOKIE);
  return q;
}

enum class diag_outcome : std::uint8_t { found, gone, not_said };

/// The owner of the socket at the far end. One that no process has any more is gone.
diag_outcome ask_kernel(end_point const& near, end_point const& far, uid_t& owner) {
  descriptor const link(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!link) return diag_outcome::not_said;
  setsockopt(link.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  diag_question const q = question_for(near, far);
  if (send(link.get(), &q, sizeof q, 0) != ssize_t(sizeof q)) return diag_outcome::not_said;
  alignas(nlmsghdr) char bytes[4096];
  ssize_t const got = recv(link.get(), bytes, sizeof bytes, 0);
  if (got < ssize_t(sizeof(nlmsghdr))) return diag_outcome::not_said;
  auto const* const head = reinterpret_cast<nlmsghdr const*>(bytes);
  if (head->nlmsg_type == NLMSG_ERROR && got >= ssize_t(NLMSG_LENGTH(sizeof(nlmsgerr)))) {
    auto const* const why = static_cast<nlmsgerr const*>(NLMSG_DATA(head));
    return why->error == -ENOENT ? diag_outcome::gone : diag_outcome::not_said;
  }
  if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || got < ssize_t(NLMSG_LENGTH(sizeof(inet_diag_msg))))
    return diag_outcome::not_said;
  auto const* const found = static_cast<inet_diag_msg const*>(NLMSG_DATA(head));
  owner = found->idiag_uid;
  return found->idiag_inode == 0 ? diag_outcome::gone : diag_outcome::found;
}

}  // namespace

std::optional<http_peer> peer_of(int socket, owner_lookup const& owner_of) {
  auto const near = end_of(socket, getsockname), far = end_of(socket, getpeername);
  if (!near || !far) return std::nullopt;
  if (!is_of_this_machine(*near, *far)) return http_peer{far->text};
  uid_t uid = 0;
  switch (ask_kernel(*near, *far, uid)) {
    case diag_outcome::gone:
      return std::nullopt;
    case diag_outcome::found:
      return http_peer{fmt::format("uid {}", owner_by(owner_of, uid)),
                       uid == 0 || uid == geteuid()};
    case diag_outcome::not_said:
      break;
  }
  return http_peer{far->text};
}

bool peer_places::enter(http_peer const& who) {
  std::lock_guard const hold(lock_);
  std::size_t& of_one = taken_[who.name];
  std::size_t const most = sum_ < all_ / 2 ? most_of_one : 1;
  bool const may = who.is_operator || of_one < most;
  if (may) ++of_one, ++sum_;
  if (of_one == 0) taken_.erase(who.name);
  return may;
}

void peer_places::leave(http_peer const& who) {
  std::lock_guard const hold(lock_);
  auto const at = taken_.find(who.name);
  if (at == taken_.end()) return;
  --sum_;
  if (--at->second == 0) taken_.erase(at);
}

}  // namespace sluice::runtime
