// SPDX-License-Identifier: Apache-2.0
#include "runtime/notify.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace sluice::runtime {

namespace {

std::string take(char const* name) {
  char const* const value = std::getenv(name);
  std::string const out = value == nullptr ? "" : value;
  unsetenv(name);
  return out;
}

}  // namespace

notifier::notifier() : path_(take("NOTIFY_SOCKET")) {
  std::string const period_us = take("WATCHDOG_USEC"), pid = take("WATCHDOG_PID");
  bool const usable = path_.size() > 1 && path_.size() < sizeof(sockaddr_un::sun_path) &&
                      (path_[0] == '/' || path_[0] == '@');
  if (!usable) return;
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (pid.empty() || pid == std::to_string(getpid()))
    watchdog_ns_ = std::strtoll(period_us.c_str(), nullptr, 10) * 1000;
}

notifier::~notifier() {
  if (socket_ >= 0) close(socket_);
}

void notifier::send(std::string const& text) {
  if (socket_ < 0) return;
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path_.data(), path_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = 0;  // an abstract name
  auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  // Lost when the manager does not listen: it will ask by its own means.
  sendto(socket_, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr const*>(&to),
         bytes);
}

void notifier::ready() { send("READY=1\n"); }

void notifier::reloading(std::int64_t now_ns) {
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n", now_ns / 1000));
}

void notifier::stopping() { send("STOPPING=1\n"); }

void notifier::status(std::string_view line) {
  if (line == last_status_) return;
  last_status_ = line;
  std::string one_line(line);
  for (char& c : one_line)
    if (c == '\n') c = ' ';
  send("STATUS=" + one_line + "\n");
}

std::int64_t notifier::due_ns() const {
  if (watchdog_ns_ <= 0) return std::numeric_limits<std::int64_t>::max();
  return last_alive_ns_ + watchdog_ns_ / 2;
}

void notifier::alive(std::int64_t now_ns) {
  if (watchdog_ns_ <= 0 || now_ns - last_alive_ns_ < watchdog_ns_ / 3) return;
  last_alive_ns_ = now_ns;
  send("WATCHDOG=1\n");
}

}  // namespace sluice::runtime
