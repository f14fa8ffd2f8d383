// SPDX-License-Identifier: Apache-2.0
// The local socket: AF_UNIX SEQPACKET, one JSON object per packet (at most 64 KiB), one answer per
// request. The peer's credentials are the kernel's. Served by every role of sluiced; asked by the
// command line.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "policy/error.h"

namespace sluice::local {

struct peer {
  uid_t uid;
  gid_t gid;
  pid_t pid;
  int pidfd;  // -1 where the kernel has none: then pid is a hint
};

/// Throws sluice::error; the client sees {"error": text, "status": n}.
using handler = std::function<nlohmann::json(peer const&, nlohmann::json const& request)>;

class server {
 public:
  /// `mode` of the socket file: 0600 for one user's daemon, 0666 for root's.
  static std::unique_ptr<server> open(std::string const& path, unsigned mode, handler h);
  virtual ~server() = default;
  virtual int fd() const = 0;                   // readable when serve() has work
  virtual void serve(std::int64_t now_ns) = 0;  // never blocks; at most 64 clients, 4 per uid
                                                // (root: no such bound)
};

inline constexpr char socket_name[] = "sluiced.sock";  // in the run directory

/// One request, one answer. Throws: nobody listens (no_daemon), timeout, or the daemon's own error.
class no_daemon : public error {
 public:
  explicit no_daemon(std::string const& sentence) : error(exit_sluice, sentence) {}
};
nlohmann::json ask(std::string const& socket_path, nlohmann::json const& request, int timeout_ms);

}  // namespace sluice::local
