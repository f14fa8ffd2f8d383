// SPDX-License-Identifier: Apache-2.0
// The local socket: AF_UNIX SEQPACKET, one JSON object per packet (at most 64 KiB; an operator's
// may be attached, see attachment.h), one answer per request. The peer's credentials are the
// kernel's. Served by every role of sluiced; asked by the command line.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "policy/error.h"

namespace sluice::local {

inline constexpr char socket_name[] = "sluiced.sock";  // in the run directory
inline constexpr std::size_t most_bytes = 65536;       // of a request or an answer

/// Who asks, as the kernel knew at connect(). Authorise by uid and gid only.
struct peer {
  uid_t uid;
  gid_t gid;
  pid_t pid;
  int pidfd;                       // -1 where the kernel has none: then pid is a hint
  std::vector<gid_t> groups = {};  // supplementary ones
};

/// Throws sluice::error; the client sees {"error": text, "status": n}.
using handler = std::function<nlohmann::json(peer const&, nlohmann::json const& request)>;

class server {
 public:
  /// `mode` of the socket file: 0600 for one user's daemon, 0666 for root's. Throws when another
  /// daemon serves the path.
  static std::unique_ptr<server> open(std::string const& path, unsigned mode, handler h);
  virtual ~server() = default;
  virtual int fd() const = 0;                   // readable when serve() has work
  virtual void serve(std::int64_t now_ns) = 0;  // never blocks; at most 64 clients, 4 per uid
                                                // (root: no such bound)
};

/// Nobody listens, or whoever does is not for us.
class no_daemon : public error {
 public:
  explicit no_daemon(std::string const& sentence) : error(exit_sluice, sentence) {}
};
/// A daemon is there and did not answer in time.
class no_answer : public error {
 public:
  explicit no_answer(std::string const& sentence) : error(exit_sluice, sentence) {}
};

/// One request, one answer. Throws no_daemon, no_answer, or the daemon's own error. `served_by`:
/// the uid that listens, for those who must not believe just anybody.
nlohmann::json ask(std::string const& socket_path, nlohmann::json const& request, int timeout_ms,
                   uid_t* served_by = nullptr);

}  // namespace sluice::local
