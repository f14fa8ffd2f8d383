// SPDX-License-Identifier: Apache-2.0
// The two ZeroMQ sockets of the control plane, with every option set and every refusal counted:
// parent_socket (ROUTER, binds) and child_socket (DEALER, connects to one address of a list at a
// time). One context per process. Nothing here blocks; poll the descriptors or zmq handles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/allowance.h"
#include "wire/codec.h"

namespace sluice::wire {

/// The zmq context and the thread that judges keys. Made once, in main, after signals are blocked;
/// outlives every socket.
class context {
 public:
  virtual ~context() = default;
  virtual void stop_judging() = 0;  // for tests: from now on no key is let in
};
struct context_options {
  int io_threads = 1;
  bool judge = true;  // false, for tests: nobody judges keys, so bind() with keys must refuse
};
std::unique_ptr<context> make_context(context_options const& options = {});

/// Who may speak, read from the keys directory; see keys.h. Null: plain, loopback only.
struct security;

/// Messages that were not listened to, by reason.
struct peer_counts {
  std::uint64_t refused_malformed = 0, refused_role = 0, refused_name = 0, refused_flood = 0,
                refused_unknown_key = 0, refused_replay = 0, send_failed = 0, refused_excess = 0;
};

struct parent_options {
  unsigned most_faults = 100;  // of one child within `mute_ns`; then it is not heard for so long
  std::int64_t mute_ns = 60'000'000'000;
  std::int64_t silent_ns = 3'000'000'000;  // an older process may take a name back after so long
  allowance::terms terms = {};             // how much a child may say
};

class parent_socket {
 public:
  struct incoming {
    std::uint32_t child;      // small dense number, stable for a name as long as the process lives
    std::string const* name;  // node or relay name (by key; with plain by its hello)
    role who;
    bool may_ask;  // for its users (keys.h); with plain anybody
    envelope head;
    message body;
  };
  /// Throws sluice::error (address in use, not loopback while plain, keys are not judged …). With
  /// keys it lets throw-away clients knock, one with a key that is allowed and one without.
  static std::unique_ptr<parent_socket> bind(context& c, std::string const& address,
                                             security const* keys, std::uint64_t incarnation,
                                             parent_options const& options = {});
  virtual ~parent_socket() = default;
  virtual void* zmq_handle() = 0;           // for zmq_poll
  virtual std::string address() const = 0;  // as bound, with the real port
  /// Next message, or none. Unknown connections are answered `restart` here; only hello passes.
  /// After 2000 refused messages in a row it returns none, so that others have their turn.
  virtual std::optional<incoming> receive() = 0;
  /// False: the child is gone, its queue is full, or the message is too long; counted.
  virtual bool send(std::uint32_t child, message const& m, std::uint64_t cycle) = 0;
  virtual void drop(std::uint32_t child) = 0;  // forget the connection; it must say hello again
  /// The new list counts from the next message on. Plain sockets stay plain.
  virtual void reload(security const* keys) = 0;
  virtual peer_counts const& counts() const = 0;  // of all, strangers included
  virtual peer_counts const& counts(std::uint32_t child) const = 0;
  /// Next line for the log, at most one per child and minute; empty: none.
  virtual std::string complaint() = 0;
};

struct child_options {
  std::int64_t retry_first_ns = 5'000'000'000;  // after the parent refused us; doubles
  std::int64_t retry_most_ns = 60'000'000'000;
};

class child_socket {
 public:
  /// `parents`: addresses, walked in order by next().
  static std::unique_ptr<child_socket> make(context& c, std::vector<std::string> const& parents,
                                            security const* keys, std::uint64_t incarnation,
                                            child_options const& options = {});
  virtual ~child_socket() = default;
  virtual void* zmq_handle() = 0;  // changes after next() and after a retry: ask before each poll
  virtual void* monitor_handle() = 0;  // poll it too; maintain() reads it
  virtual std::string const& address() const = 0;
  virtual bool is_connected() const = 0;
  /// Its welcome says so. A relay has few children, so they may come back sooner after it was lost.
  virtual void parent_is(role who) = 0;
  /// A fresh socket to the next address; to the same if there is but one. One that refused us a
  /// moment ago is not bothered before its time.
  virtual void next() = 0;
  /// Reads the monitor, retries after a refusal (5 s … 60 s with jitter). Call at least once a
  /// second. Returns a line for the log when something happened that a person should know, else
  /// empty.
  virtual std::string maintain(std::int64_t now_ns) = 0;
  /// Next message of the parent, or none. What is malformed, not a parent's, or older than what was
  /// received before is left out and counted.
  virtual std::optional<std::pair<envelope, message>> receive() = 0;
  /// False: not connected, the queue is full, or the message is too long for our role: maintain()
  /// then says so, once a minute.
  virtual bool send(message const& m, std::uint64_t cycle) = 0;
  virtual std::uint64_t refused() const = 0;  // messages left out by receive()
};

}  // namespace sluice::wire
