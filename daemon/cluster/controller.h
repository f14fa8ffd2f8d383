// SPDX-License-Identifier: Apache-2.0
// A running controller: the brain with its sockets, its files, and the people who ask it things.
// One thread, one poll loop (run.cc): drain everything, then settle, then the slow work once a
// second. Nothing here decides how much anybody gets.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cluster/brain.h"
#include "cluster/gate_book.h"
#include "cluster/overrides.h"
#include "cluster/relay_side.h"
#include "cluster/store.h"
#include "control/lease_file.h"
#include "control/policy_log.h"
#include "control/policy_parts.h"
#include "control/services.h"
#include "local/local.h"
#include "wire/keys.h"
#include "wire/parent_choice.h"
#include "wire/socket.h"

namespace sluice::cluster {

/// The policy in force, as parsed.
struct policy_in_force {
  policy::site site;
  std::string text;
  std::int64_t loaded_s = 0;
};

class controller final : public outbox {
 public:
  controller(control::config const& c, control::services& s);
  ~controller() override;

  int run();

  bool send(std::uint32_t child, wire::message const& m) override;

  // What people may do, see admin.h.
  bool is_relay() const { return up_ != nullptr; }
  control::config const& config() const { return config_; }
  control::services const& services() const { return services_; }
  brain& decisions() { return *brain_; }
  policy_in_force const& in_force() const { return policy_; }
  overrides& by_hand() { return overrides_; }
  void overrides_changed();
  /// Takes a policy that was checked. Throws sluice::error.
  void use_policy(policy::site site, std::string text, control::policy_source const& source);
  bool keep_applied(std::string const& text);
  std::string parent_address() const { return above_ ? above_->address() : ""; }
  std::string const& parent_name() const { return parent_name_; }
  bool is_parent_heard() const;
  std::string listens_at() const { return below_->address(); }
  void count_request(char const* verb, bool served);

 private:
  void start_policy();
  void note_policy(control::policy_source const& source);
  void reload();
  bool drain(std::int64_t now);  // false: there is more
  void hear(wire::parent_socket::incoming& m, std::int64_t now);
  void settle(std::int64_t now);
  void each_second(std::int64_t now);
  presence look_for(std::uint64_t job, job_override& o) const;
  void tell_notices();
  void publish(std::int64_t now);
  void publish_supplies(double passed_s);
  void remember(std::int64_t now);  // tells the history
  int wait_ms(std::int64_t now) const;
  bool take_orders();

  // Questions from afar, see questions.cc.
  void hear_question(std::uint32_t child, std::string const& name, wire::question& q,
                     std::int64_t now);
  void refuse_question(std::uint32_t child, std::uint64_t id, char const* why);
  void answer_questions();
  void pass_on(std::uint32_t child, wire::question& q, std::int64_t now);
  void hear_answer(wire::answer& a);
  void forget_questions(std::int64_t now);

  // Cluster epochs, see gates.cc.
  void read_gates();
  void hear_gates(std::uint32_t child, wire::message const& m, std::int64_t now);
  void hear_old(std::uint32_t child, wire::message const& m, std::int64_t now);
  void hear_gates_above(wire::message const& m, std::int64_t now);
  void settle_gates(std::int64_t now);

  // Relay.
  void hear_above(wire::message& m, std::int64_t now);
  void use_heard_policy(std::string const& text);
  void talk_up(std::int64_t now, bool demand_turned);
  void walk();
  void greet_again();
  void renew_above(wire::security const& fresh);
  void look_after_parent(std::int64_t now);
  void announce_jobs(std::int64_t now);
  void recall_lease(std::int64_t now);
  void keep_lease();
  std::vector<std::uint32_t> supply_keys() const;

  control::config config_;
  control::services& services_;
  store store_;
  std::unique_ptr<wire::security> keys_;  // read again by a reload; before it: the services'
  policy_in_force policy_;
  std::string file_text_;  // of config_.policy
  overrides overrides_;
  std::unique_ptr<brain> brain_;
  std::unique_ptr<wire::parent_socket> below_;
  std::unique_ptr<local::server> local_;

  std::unique_ptr<relay_side> up_;
  std::unique_ptr<wire::child_socket> above_;
  wire::parent_choice choice_;
  std::unique_ptr<control::lease_file> lease_memory_;
  bool lease_written_ = true;
  control::policy_parts parts_;
  std::uint64_t refused_policy_ = 0;  // hash of the last one that could not be read
  std::string parent_name_;
  std::uint32_t parent_minor_ = 0;
  bool is_welcome_ = false;
  std::int64_t hello_at_ = 0, heard_at_ = 0, maintained_at_ = 0, announced_at_ = 0;

  struct asked {
    std::uint32_t child;
    std::string through;
    wire::question q;
  };
  std::deque<asked> asked_;
  struct passed {
    std::uint64_t ours, theirs;
    std::uint32_t child;
    std::int64_t asked_at;
  };
  std::vector<passed> passed_on_;
  std::uint64_t last_question_ = 0;

  std::unique_ptr<gate_book> gates_;
  std::int64_t gates_tried_at_ = 0, gates_retry_ns_ = 0;

  std::int64_t second_at_ = 0;
  std::int64_t settle_ns_ = 0;  // what the last allocation took
  std::int64_t published_at_ = 0, remembered_at_ = 0;
  std::vector<std::string> classes_shown_;
};

}  // namespace sluice::cluster
