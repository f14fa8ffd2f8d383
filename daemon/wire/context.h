// SPDX-License-Identifier: Apache-2.0
// Inside of wire: the one zmq context of the process, sockets that close themselves, and the lists
// by which the ZAP thread judges keys. libzmq accepts every key when nobody answers on
// inproc://zeromq.zap.01; so each server socket has its own domain here, insists on being judged
// (ZAP_ENFORCE_DOMAIN), and is tried before it is used.
#pragma once

#include <zmq.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "wire/keys.h"
#include "wire/socket.h"

namespace sluice::wire {

class zmq_context;

/// A zmq socket, closed without lingering.
class zmq_socket {
 public:
  zmq_socket() = default;
  zmq_socket(void* context, int type);  // throws
  zmq_socket(zmq_socket&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  zmq_socket& operator=(zmq_socket&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~zmq_socket() {
    if (at_ != nullptr) zmq_close(at_);
  }
  void* get() const { return at_; }
  explicit operator bool() const { return at_ != nullptr; }

  void set(int option, int value);  // these throw
  void set(int option, std::int64_t value);
  void set(int option, key const& value);
  void set(int option, std::string const& value);
  std::string last_endpoint() const;

 private:
  void check(int status, int option);
  void* at_ = nullptr;
};

/// A frame that frees itself.
class zmq_frame {
 public:
  zmq_frame() { zmq_msg_init(&msg_); }
  ~zmq_frame() { zmq_msg_close(&msg_); }
  zmq_frame(zmq_frame const&) = delete;
  zmq_frame& operator=(zmq_frame const&) = delete;
  /// Never blocks; false: nothing there.
  bool receive(void* socket);
  bool more() { return zmq_msg_more(&msg_) != 0; }
  std::span<std::byte const> bytes() {
    return {static_cast<std::byte const*>(zmq_msg_data(&msg_)), zmq_msg_size(&msg_)};
  }
  std::string_view text() {
    return {static_cast<char const*>(zmq_msg_data(&msg_)), zmq_msg_size(&msg_)};
  }
  /// What ZAP called the sender; null: nothing. Reliable on the last frame of a message only.
  char const* user_id() { return zmq_msg_gets(&msg_, "User-Id"); }

 private:
  zmq_msg_t msg_;
};

/// What happens to one socket's connections. Ends before the socket does: the library's I/O thread
/// waits for ever in an event that nobody can receive any more.
class monitor {
 public:
  struct event {
    unsigned what = 0;  // ZMQ_EVENT_*
    std::uint32_t value = 0;
  };
  monitor() = default;
  monitor(zmq_context& c, zmq_socket const& watched);
  monitor(monitor&& other) noexcept
      : watched_(std::exchange(other.watched_, nullptr)), pair_(std::move(other.pair_)) {}
  monitor& operator=(monitor&& other) noexcept {
    std::swap(watched_, other.watched_);
    pair_ = std::move(other.pair_);  // swaps
    return *this;
  }
  ~monitor() {
    if (watched_ != nullptr) zmq_socket_monitor(watched_, nullptr, 0);
  }
  std::optional<event> next();
  void* handle() const { return pair_.get(); }

 private:
  void* watched_ = nullptr;
  zmq_socket pair_;
};

/// Whom one server socket lets in. The ZAP thread reads it, the owner replaces it.
class key_list {
 public:
  void replace(std::set<key> keys);
  bool admits(key const& k, std::string const& address);  // counts those it does not admit
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  std::string last_refused() const;  // "key HEX from ADDRESS"

 private:
  mutable std::mutex lock_;
  std::set<key> keys_;
  std::string last_refused_;
  std::atomic<std::uint64_t> refused_{0};
};

class zmq_context final : public context {
 public:
  explicit zmq_context(context_options const& options);
  ~zmq_context() override;
  void stop_judging() override;

  void* get() const { return at_; }
  std::string fresh_name(char const* what);  // "what-N", never twice
  std::shared_ptr<key_list> add_domain(std::string const& domain);
  void remove_domain(std::string const& domain);

 private:
  void judge(zmq_socket requests, zmq_socket stop);
  bool answer(void* requests);

  void* at_;
  zmq_socket stop_;  // the other end is in the thread
  std::thread judge_;
  std::atomic<unsigned> names_{0};
  std::mutex lock_;
  std::map<std::string, std::shared_ptr<key_list>> domains_;
};

/// What both sides of a connection have in common (sizes and times: README.md).
void set_common_options(zmq_socket& s);
/// Makes a socket a CURVE server whose clients are all judged; throws if the library would not.
void serve_curve(zmq_socket& s, std::string const& domain, key const& secret);
/// Throws a usage error unless the address cannot leave this machine.
void require_loopback(std::string const& address);

/// Lets two throw-away clients knock at `address`: the allowed one must be let in, the other one
/// must not. Throws.
void try_lock(zmq_context& c, key_list& list, std::set<key> const& allowed,
              std::string const& address, key const& server);

}  // namespace sluice::wire
