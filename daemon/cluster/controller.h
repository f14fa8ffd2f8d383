// SPDX-License-Identifier: Apache-2.0
// A running controller: the arbiter with its sockets, its files, and its local clients. One thread,
// one poll loop: drain everything, then settle, then the slow work once a second. Nothing here
// decides how much anybody gets.
// What stays true: every queue is empty before anything is allocated, so after a stall of our own
// the newest report of each child counts and not the oldest; and one child that floods cannot keep
// the loop from its cycle.
#pragma once

#include <memory>
#include <string>

#include "cluster/arbiter.h"
#include "cluster/change_keeper.h"
#include "cluster/figures.h"
#include "cluster/parent_link.h"
#include "cluster/policy_keeper.h"
#include "cluster/question_desk.h"
#include "epochs/gate_keeper.h"
#include "local/local.h"
#include "runtime/services.h"
#include "verbs/role.h"
#include "wire/keys.h"
#include "wire/socket.h"

namespace sluice::cluster {

class controller final : public outbox {
 public:
  controller(runtime::config const& c, runtime::services& s);
  ~controller() override;

  /// The local socket asks this role, which must outlive the controller's run.
  void open_socket(verbs::role& role);
  /// Until SIGTERM. The exit status. The socket is open.
  int run();

  bool send(std::uint32_t child, wire::message const& m) override;

  // What people see and may do, for cluster_role.h.
  runtime::config const& config() const { return config_; }
  runtime::services& services() const { return services_; }
  arbiter const& decisions() const { return *arbiter_; }
  policy_keeper const& policy() const { return policy_; }
  parent_link const* parent() const { return parent_.get(); }
  std::string listens_at() const { return below_->address(); }
  verbs::override_book& overrides() { return changes_.book(); }
  change_keeper const& changes() const { return changes_; }
  void overrides_changed();
  /// Throws sluice::error, and then nothing has changed.
  void use_policy(std::string const& text, runtime::policy_source const& source);
  /// The same of one that was applied over the socket. The answer to that waits until it is kept.
  void apply_policy(std::string const& text, runtime::policy_source const& source);

 private:
  void reload();
  std::unique_ptr<wire::security> keys_of(std::string const& dir) const;
  wire::security const* keys_in_use() const;
  void use_keys(std::unique_ptr<wire::security> keys, std::string const& dir);
  void reload_policy(std::string const& file);
  bool drain(std::int64_t now);
  void hear(wire::parent_socket::incoming& m, std::int64_t now);
  void hear_parent(std::int64_t now);
  void hear_question(wire::parent_socket::incoming const& from, wire::question& q,
                     std::int64_t now);
  bool take_policy(std::string const& text, std::string const& from);
  change_keeper::standing standing(std::int64_t now) const;
  void turn_changes(std::int64_t now);
  void settle(std::int64_t now);
  void settle_gates(std::int64_t now);
  void answer_questions(std::int64_t now);
  void tell_kept();
  void each_second(std::int64_t now);
  void publish(std::int64_t now);
  int wait_ms(std::int64_t now) const;
  bool take_orders();
  bool wait(bool drained);

  runtime::config config_;
  runtime::services& services_;
  change_keeper changes_;
  policy_keeper policy_;
  std::unique_ptr<wire::security> keys_;  // read again by a reload; before it: the services'
  std::unique_ptr<arbiter> arbiter_;
  std::unique_ptr<wire::parent_socket> below_;
  std::unique_ptr<parent_link> parent_;  // of a relay
  verbs::role* role_ = nullptr;
  std::unique_ptr<local::server> local_;
  question_desk questions_;
  epochs::gate_keeper gates_;
  figures figures_;
  std::uint64_t refused_policy_ = 0;  // hash of the last one that could not be read
  std::int64_t second_at_ = 0;
  std::int64_t settle_ns_ = 0;  // what the last allocation took
  bool is_asked_ = false;       // a client of the local socket has come
};

}  // namespace sluice::cluster
