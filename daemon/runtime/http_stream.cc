// SPDX-License-Identifier: Apache-2.0
#include "runtime/http_stream.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/clock.h"

namespace sluice::runtime {

namespace {

void name_of(int socket, decltype(getpeername)* which, std::string& ip, int& port) {
  sockaddr_storage at = {};
  socklen_t size = sizeof at;
  char host[NI_MAXHOST] = {}, service[NI_MAXSERV] = {};
  auto* const as = reinterpret_cast<sockaddr*>(&at);
  if (which(socket, as, &size) != 0 ||
      getnameinfo(as, size, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host;
  std::from_chars(service, service + std::strlen(service), port);
}

}  // namespace

http_stream::http_stream(int socket) : socket_(socket), begun_ns_(steady_ns()) {}

bool http_stream::wait(short event, std::int64_t until_ns) const {
  while (true) {
    std::int64_t const left_ns = until_ns - steady_ns();
    if (left_ns <= 0) return false;
    pollfd p = {socket_, event, 0};
    int const got = poll(&p, 1, static_cast<int>(left_ns / 1'000'000) + 1);
    if (got > 0) return true;
    if (got < 0 && errno != EINTR) return false;
  }
}

bool http_stream::is_readable() const {
  return from_ < end_ || wait(POLLIN, begun_ns_ + request_ns);
}
bool http_stream::is_writable() const { return wait(POLLOUT, begun_ns_ + answer_ns); }

ssize_t http_stream::read(char* to, std::size_t most) {
  if (from_ == end_) {
    if (received_ >= request_bytes || !is_readable()) return -1;
    ssize_t const got = recv(socket_, room_, sizeof room_, MSG_DONTWAIT);
    if (got <= 0) return got;
    received_ += static_cast<std::size_t>(got);
    from_ = 0;
    end_ = static_cast<std::size_t>(got);
  }
  std::size_t const bytes = std::min(most, end_ - from_);
  std::memcpy(to, room_ + from_, bytes);
  from_ += bytes;
  return static_cast<ssize_t>(bytes);
}

ssize_t http_stream::write(char const* from, std::size_t bytes) {
  if (!is_writable()) return -1;
  return send(socket_, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void http_stream::get_remote_ip_and_port(std::string& ip, int& port) const {
  name_of(socket_, getpeername, ip, port);
}

void http_stream::get_local_ip_and_port(std::string& ip, int& port) const {
  name_of(socket_, getsockname, ip, port);
}

}  // namespace sluice::runtime
