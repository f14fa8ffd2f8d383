// SPDX-License-Identifier: Apache-2.0
// The asking side. Bounded in time at every step: a daemon that is stopped must not hold a
// command.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "local/address.h"
#include "local/attachment.h"
#include "local/local.h"

namespace sluice::local {

namespace {

class asker {
 public:
  asker(std::string const& path, int timeout_ms)
      : path_(path), until_ns_(steady_ns() + timeout_ms * std::int64_t{1'000'000}) {}

  void connect() {
    address const to(path_);
    socket_ = descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) throw sluice_error(fmt::format("socket: {}", std::strerror(errno)));
    while (::connect(socket_.get(), to.get(), sizeof to.name) != 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN)
        throw no_daemon(fmt::format("no sluiced at {}: {}", path_, std::strerror(errno)));
      // Its queue is full. Nothing can be polled for that.
      if (left_ms() == 0) silent();
      poll(nullptr, 0, 2);
    }
  }

  uid_t served_by() const {
    ucred who = {};
    socklen_t size = sizeof who;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
      throw sluice_error(fmt::format("{}: {}", path_, std::strerror(errno)));
    return who.uid;
  }

  void send(std::string const& text) {
    if (text.size() > most_attached_bytes)
      throw usage_error(fmt::format("the request is larger than {} bytes", most_attached_bytes));
    while (send_text(socket_.get(), text, MSG_NOSIGNAL) < 0) {
      if (errno == EPIPE) return;  // hung up on: why, may still be there to read
      if (errno == EPERM)
        throw usage_error(fmt::format(
            "the request is larger than {} bytes: only an operator may send one", most_bytes));
      wait(POLLOUT);
    }
  }

  nlohmann::json receive() {
    std::vector<char> buffer(most_bytes);
    bool reset = false;  // told once, by a daemon that hung up unread; its reason comes after it
    received packet;
    while ((packet = receive_packet(socket_.get(), buffer, true)).bytes < 0)
      if (errno != ECONNRESET || std::exchange(reset, true)) wait(POLLIN);
    if (packet.bytes == 0) throw no_answer(fmt::format("the sluiced at {} hung up", path_));
    std::optional<std::string> const beside =
        packet.attached ? read_attached(packet.attached)
                        : std::optional(std::string(buffer.data(), size_t(packet.bytes)));
    auto answer = nlohmann::json::parse(beside.value_or(""), nullptr, false);
    if (!answer.is_object())
      throw sluice_error(fmt::format("the sluiced at {} answered no JSON object", path_));
    return answer;
  }

 private:
  int left_ms() const {
    std::int64_t const left_ms = (until_ns_ - steady_ns()) / 1'000'000;
    return left_ms > 0 ? static_cast<int>(left_ms) : 0;
  }

  [[noreturn]] void silent() const {
    throw no_answer(fmt::format("the sluiced at {} does not answer", path_));
  }

  /// After a call that returned -1: waits if that helps, else throws.
  void wait(short what) const {
    if (errno == EINTR) return;
    if (errno == EPIPE || errno == ECONNRESET)
      throw no_answer(fmt::format("the sluiced at {} hung up", path_));
    if (errno != EAGAIN) throw sluice_error(fmt::format("{}: {}", path_, std::strerror(errno)));
    pollfd p = {socket_.get(), what, 0};
    if (poll(&p, 1, left_ms()) == 0) silent();
  }

  std::string path_;
  std::int64_t until_ns_;
  descriptor socket_;
};

}  // namespace

nlohmann::json ask(std::string const& socket_path, nlohmann::json const& request, int timeout_ms,
                   uid_t* served_by) {
  asker a(socket_path, timeout_ms);
  a.connect();
  if (served_by != nullptr) *served_by = a.served_by();
  std::string const text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  nlohmann::json answer;
  // Before it has accepted us, a daemon lets nobody attach.
  if (text.size() > most_bytes && text.size() <= most_attached_bytes) {
    a.send(R"({"verb":"hello"})");
    answer = a.receive();
  }
  if (!answer.contains("error")) {
    a.send(text);
    answer = a.receive();
  }
  auto const failed = answer.find("error");
  if (failed == answer.end()) return answer;
  auto const status = answer.find("status");
  int const told = status != answer.end() && status->is_number() ? status->get<int>() : exit_sluice;
  throw error(is_for_asker(told) ? told : exit_sluice,
              failed->is_string() ? failed->get<std::string>() : failed->dump());
}

}  // namespace sluice::local
