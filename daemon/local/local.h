// SPDX-License-Identifier: Apache-2.0
// The local socket: AF_UNIX SEQPACKET, one JSON object per packet (at most 64 KiB; an operator's
// may be attached, see attachment.h), one answer per request. The peer's credentials are the
// kernel's. Served by every role of sluiced; asked by the command line.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/owners.h"

namespace sluice::local {

inline constexpr char socket_name[] = "sluiced.sock";  // in the run directory
inline constexpr std::size_t most_bytes = 65536;       // of a request or an answer

/// Who asks, as the kernel knew at connect(). Authorise by uid and gid only.
struct peer {
  uid_t uid;
  gid_t gid;
  pid_t pid;
  int pidfd = -1;                  // -1 where the kernel has none: then pid is a hint
  std::vector<gid_t> groups = {};  // supplementary ones
  std::uint64_t ticket = 0;        // of this client, for server::reply; never 0 when it is ours
  bool is_afar = false;  // another daemon says who it is, not our kernel: never an operator
  bool is_over = false;  // it had ended when its connection was taken
};

/// True when the process that asks has ended: whatever has its number now is another. Somebody else
/// may hold its connection.
bool has_ended(peer const& who);

/// Root, and the user whose daemon this is; nobody who is named by another daemon.
inline bool is_operator(peer const& who) {
  return !who.is_afar && (who.uid == 0 || who.uid == geteuid());
}

/// Throws sluice::error; the client sees {"error": text, "status": n}. It may return later().
using handler = std::function<nlohmann::json(peer const&, nlohmann::json const& request)>;

/// What a handler returns that will answer by server::reply.
nlohmann::json later();

/// What the client is told: what the handler returns or throws, as text that fits a packet. Empty:
/// later.
std::string answer_text(handler const& h, peer const& who, char const* bytes, std::size_t size,
                        std::size_t most = most_bytes);
/// {"error": why, "status": status}
std::string refusal_text(std::string const& why, int status);

class server {
 public:
  /// `mode` of the socket file: 0600 for one user's daemon, 0666 for root's. Throws when another
  /// daemon serves the path. `owner_of`: whose place a client takes.
  static std::unique_ptr<server> open(std::string const& path, unsigned mode, handler h,
                                      owner_lookup owner_of = {});
  virtual ~server() = default;
  virtual int fd() const = 0;  // readable when serve() has work
  /// When a client will have been silent for too long; the largest number: there is none.
  virtual std::int64_t due_ns() const = 0;
  /// Never blocks. places.h says who has a place.
  virtual void serve(std::int64_t now_ns) = 0;
  /// A client waits for reply() with this ticket.
  virtual bool is_waiting(std::uint64_t ticket) const = 0;
  struct usage {
    std::size_t clients = 0;    // now
    std::uint64_t refused = 0;  // that found no place, or gave theirs up
  };
  virtual usage in_use() const = 0;
  /// The answer that later() promised; of a client that is gone, nothing.
  virtual void reply(std::uint64_t ticket, std::string const& text) = 0;
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

/// It hung up without a word: it ends, or it is short of something for a moment.
class hung_up : public no_answer {
 public:
  explicit hung_up(std::string const& socket)
      : no_answer("the sluiced at " + socket + " hung up") {}
};

/// One request, one answer. Throws no_daemon, no_answer, or the daemon's own error. `timeout_ms`:
/// of a daemon that does nothing; one that is at work is given five seconds more. `served_by`: the
/// uid that listens, for those who must not believe just anybody.
nlohmann::json ask(std::string const& socket_path, nlohmann::json const& request, int timeout_ms,
                   uid_t* served_by = nullptr);

}  // namespace sluice::local
