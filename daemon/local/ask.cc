// SPDX-License-Identifier: Apache-2.0
// The asking side. Bounded in time at every step: a daemon that is stopped must not hold a
// command. One that works, or waits for a processor or a disk, is waited for longer.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process_mark.h"
#include "local/address.h"
#include "local/attachment.h"
#include "local/local.h"

namespace sluice::local {

namespace {

// Without it a new job runs without its limits, so a node that starves is given time.
constexpr std::int64_t most_busy_ns = 20'000'000'000;  // for a daemon that works, in all
constexpr std::int64_t busy_part = 100;                // it had so much of a processor, at least

/// Processor time of a process; 0: it is not ours to see.
std::int64_t used_ns(pid_t pid) {
  clockid_t of = 0;
  timespec t = {};
  if (pid <= 0 || clock_getcpuclockid(pid, &of) != 0 || clock_gettime(of, &t) != 0) return 0;
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

/// One of its threads would go on. Of ourselves that says nothing: we run.
bool is_held_up(pid_t pid) {
  return pid > 0 && pid != getpid() && has_waiting_thread(static_cast<std::uint32_t>(pid));
}

class asker {
 public:
  asker(std::string const& path, int timeout_ms)
      : path_(path),
        timeout_ns_(timeout_ms * std::int64_t{1'000'000}),
        begun_ns_(steady_ns()),
        until_ns_(begun_ns_ + timeout_ns_) {}

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
    used_ns_ = used_ns(server().pid);
  }

  uid_t served_by() const { return server().uid; }

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
    if (packet.bytes == 0) throw hung_up(path_);
    std::optional<std::string> const beside =
        packet.attached ? read_attached(packet.attached)
                        : std::optional(std::string(buffer.data(), size_t(packet.bytes)));
    auto answer = nlohmann::json::parse(beside.value_or(""), nullptr, false);
    if (!answer.is_object())
      throw sluice_error(fmt::format("the sluiced at {} answered no JSON object", path_));
    return answer;
  }

 private:
  ucred server() const {
    ucred who = {};
    socklen_t size = sizeof who;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
      throw sluice_error(fmt::format("{}: {}", path_, std::strerror(errno)));
    return who;
  }

  /// The time is over: more of it for a daemon that has done something in it, or is held up.
  bool has_more_time() {
    std::int64_t const now_ns = steady_ns(), used = used_ns(server().pid);
    std::int64_t const waited_ns = std::min(now_ns - begun_ns_, timeout_ns_);
    bool const has_worked =
        used != 0 && used - std::exchange(used_ns_, used) >= waited_ns / busy_part;
    bool const works = has_worked || is_held_up(server().pid);
    if (!works || now_ns - begun_ns_ >= timeout_ns_ + most_busy_ns) return false;
    until_ns_ = now_ns + timeout_ns_;
    return true;
  }

  int left_ms() const {
    std::int64_t const left_ms = (until_ns_ - steady_ns()) / 1'000'000;
    return left_ms > 0 ? static_cast<int>(left_ms) : 0;
  }

  [[noreturn]] void silent() const {
    throw no_answer(fmt::format("the sluiced at {} does not answer", path_));
  }

  /// After a call that returned -1: waits if that helps, else throws.
  void wait(short what) {
    if (errno == EINTR) return;
    if (errno == EPIPE || errno == ECONNRESET) throw hung_up(path_);
    if (errno != EAGAIN) throw sluice_error(fmt::format("{}: {}", path_, std::strerror(errno)));
    pollfd p = {socket_.get(), what, 0};
    if (poll(&p, 1, left_ms()) == 0 && !has_more_time()) silent();
  }

  std::string path_;
  std::int64_t timeout_ns_, begun_ns_, until_ns_;
  std::int64_t used_ns_ = 0;  // by the daemon, when it was looked at last
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
