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

#include "wire/codec.h"

namespace sluice::wire {

class context;  // zmq context and ZAP handler; made once in main, after signals are blocked
std::unique_ptr<context> make_context();
void destroy(context*);

/// Who may speak, read from the keys directory; see keys.h. Null: plain, loopback only.
struct security;

struct peer_counts {
  std::uint64_t refused_malformed = 0, refused_role = 0, refused_name = 0, refused_flood = 0,
                refused_unknown_key = 0, send_failed = 0;
};

class parent_socket {
 public:
  struct incoming {
    std::uint32_t child;      // small dense number, stable for a name as long as the process lives
    std::string const* name;  // node or relay name (by key; with plain by its hello)
    role who;
    envelope head;
    message body;
  };
  /// Throws sluice_error (address in use, not loopback while plain, no ZAP enforcement …).
  static std::unique_ptr<parent_socket> bind(context& c, std::string const& address,
                                             security const* keys, std::uint64_t incarnation);
  virtual ~parent_socket() = default;
  virtual void* zmq_handle() = 0;           // for zmq_poll
  virtual std::string address() const = 0;  // as bound, with the real port
  /// Next message, or none. Unknown connections are answered `restart` here; only hello passes.
  virtual std::optional<incoming> receive() = 0;
  /// False: the child is gone or its queue is full; counted.
  virtual bool send(std::uint32_t child, message const& m, std::uint64_t cycle) = 0;
  virtual void drop(std::uint32_t child) = 0;  // forget the connection; it must say hello again
  virtual void reload(security const* keys) = 0;
  virtual peer_counts const& counts() const = 0;
};

class child_socket {
 public:
  /// `parents`: addresses, walked in order by next().
  static std::unique_ptr<child_socket> make(context& c, std::vector<std::string> const& parents,
                                            security const* keys, std::uint64_t incarnation);
  virtual ~child_socket() = default;
  virtual void* zmq_handle() = 0;  // changes after next() and after a retry: ask before each poll
  virtual void* monitor_handle() = 0;  // poll it too; maintain() reads it
  virtual std::string const& address() const = 0;
  virtual bool is_connected() const = 0;
  virtual void next() = 0;  // a fresh socket to the next address
  /// Reads the monitor, retries after a refusal (5 s … 60 s with jitter). Call at least once a
  /// second. Returns a line for the log when something happened that a person should know, else
  /// empty.
  virtual std::string maintain(std::int64_t now_ns) = 0;
  virtual std::optional<std::pair<envelope, message>> receive() = 0;
  virtual bool send(message const& m, std::uint64_t cycle) = 0;
};

}  // namespace sluice::wire
