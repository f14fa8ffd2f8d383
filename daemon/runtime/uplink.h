// SPDX-License-Identifier: Apache-2.0
// The conversation of a node or a relay with its parent: hello, reports and their answers, the
// policy in parts, and the walk to the next address when one is silent. It decides when a message
// is sent; the caller decides what it says. What stays true: at most one report is unanswered, so a
// parent that stalls finds one stale message of ours and not a queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/log.h"
#include "runtime/policy_parts.h"
#include "wire/parent_choice.h"
#include "wire/socket.h"

namespace sluice::runtime {

class uplink {
 public:
  struct identity {
    wire::role role = wire::role::node;
    std::string name;
  };
  uplink(std::unique_ptr<wire::child_socket> socket, identity who, std::size_t addresses,
         logger& log);

  /// After a refusal hello is said again.
  static constexpr std::int64_t refused_pause_ns = 5'000'000'000;

  /// What a batch of messages brought.
  struct news {
    std::optional<wire::welcome> welcome;
    std::optional<std::string> policy;  // whole
    std::vector<wire::grant> grants;
    std::vector<wire::answer> answers;
    std::vector<wire::message> gates;  // what is said of epochs
    bool is_displaced = false;         // a newer process of our name is its child
  };
  news receive(std::int64_t now_ns);

  /// Says hello where needed, retries, walks on. `silent`: the parent has not answered for S.
  void maintain(bool silent, std::uint64_t policy_hash, std::int64_t now_ns);

  /// With new keys: everything with the parent begins anew, what was granted stays.
  void replace(std::unique_ptr<wire::child_socket> socket);

  bool is_welcome() const { return parent_ != 0; }
  std::uint64_t parent() const { return parent_; }  // its name as a hash
  std::string const& parent_name() const { return parent_name_; }
  wire::child_socket& socket() { return *socket_; }
  std::string address() const { return socket_->address(); }

  /// May a report be sent now? `cycle_ns`: after a few of them an answer is not waited for.
  bool has_credit(std::int64_t cycle_ns, std::int64_t now_ns) const;
  /// Long enough after the last one for an early one.
  bool may_be_early(std::int64_t now_ns) const;
  bool send(wire::report const& r, std::int64_t now_ns);  // false: it did not leave
  void send(wire::job_list const& jobs);
  bool send(wire::question const& q);  // false: it did not leave
  bool send_gate(wire::message const& m) { return parent_ != 0 && socket_->send(m, cycle_); }

 private:
  void forget_parent();
  void walk();
  void hear(wire::welcome& w, news& out, std::int64_t now_ns);
  void hear(wire::message& m, news& out, std::int64_t now_ns);

  std::unique_ptr<wire::child_socket> socket_;
  identity who_;
  wire::parent_choice choice_;
  logger& log_;
  policy_parts parts_;
  std::uint64_t parent_ = 0;
  std::string parent_name_;
  bool waits_ = false;  // for the answer to a report
  bool was_silent_ = false, was_connected_ = false;
  std::int64_t last_report_ns_ = 0, last_hello_ns_ = 0, last_retry_ns_ = 0;
  std::uint64_t cycle_ = 0;
};

}  // namespace sluice::runtime
