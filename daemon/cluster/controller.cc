// SPDX-License-Identifier: Apache-2.0
#include "cluster/controller.h"
#include "policy/change.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cluster/admin.h"
#include "cluster/clock.h"
#include "cluster/run.h"
#include "policy/error.h"

namespace sluice::cluster {

namespace {

lease::timers timers_for(control::config const& c, policy::site const& site) {
  std::int64_t const usual = control::config{}.cycle_ns;
  std::int64_t const cycle = c.cycle_ns != usual ? c.cycle_ns : site.control.cycle_ns;
  // A relay learns its level from its parent; one below the cluster is the least it can be.
  unsigned const level = c.role == control::role_kind::relay ? 1 : 0;
  return lease::timers_of(cycle, site.control.lease_ns, level);
}

}  // namespace

controller::controller(control::config const& c, control::services& s)
    : config_(c),
      services_(s),
      store_(c.state_dir),
      choice_(c.parents.size(), wire::job_key(0, c.name)) {
  bool const relay = c.role == control::role_kind::relay;
  start_policy();
  note_policy({config_.policy.empty() ? "the policy heard last" : config_.policy});
  brain::settings set;
  set.who = relay ? wire::role::relay : wire::role::cluster;
  set.name = c.name;
  set.time = timers_for(c, policy_.site);
  brain_ =
      std::make_unique<brain>(set, plan_of(policy_.site, policy_.text), s.incarnation, boot_ns());
  try {
    overrides_ = store_.read_overrides();
  } catch (error const& e) {
    s.log.error("overrides lost", {{"why", e.what()}});
  }
  brain_->set_overrides(&overrides_);
  if (relay) {
    up_ = std::make_unique<relay_side>(*brain_, s.incarnation);
    up_->plan_changed();
    recall_lease(boot_ns());
    above_ = wire::child_socket::make(*s.zmq, c.parents, s.keys, s.incarnation);
  }
  read_gates();
  below_ = wire::parent_socket::bind(*s.zmq, c.listen, s.keys, s.incarnation);
  local_ = local::server::open(c.run_dir + "/" + local::socket_name, geteuid() == 0 ? 0666 : 0600,
                               [this](local::peer const& who, nlohmann::json const& request) {
                                 return serve_request(*this, who, request);
                               });
  s.log.info("listening", {{"address", below_->address()},
                           {"role", relay ? "relay" : "cluster"},
                           {"supplies", brain_->policy().supplies.size()}});
}

controller::~controller() = default;

bool controller::send(std::uint32_t child, wire::message const& m) {
  return below_->send(child, m, brain_->cycle());
}

// ---------------------------------------------------------------------------- policy

void controller::start_policy() {
  std::string text;
  if (!config_.policy.empty()) {
    file_text_ = policy::read_policy_text(config_.policy);
    text = store_.policy_over(file_text_);
    if (text != file_text_)
      services_.log.info("policy applied over the socket is in force", {{"file", config_.policy}});
  } else if (auto heard = store_.heard_policy()) {
    text = *heard;
  }
  policy_.loaded_s = unix_s();
  if (text.empty()) return;
  try {
    policy_.site = policy::parse_policy(
        text, config_.policy.empty() ? "the policy heard last" : config_.policy);
    policy_.text = text;
  } catch (error const& e) {
    // A file that is wrong is the operator's to mend; what we kept ourselves is only lost.
    if (text == file_text_) throw;
    services_.log.error("kept policy refused", {{"why", e.what()}});
    if (file_text_.empty()) return;
    policy_.site = policy::parse_policy(file_text_, config_.policy);
    policy_.text = file_text_;
  }
}

void controller::note_policy(control::policy_source const& source) {
  auto* const log = services_.policies;
  if (log == nullptr || policy_.text.empty()) return;
  if (!log->note(policy_.text, source, policy_.loaded_s))
    services_.log.error("version of the policy is not saved", {{"dir", config_.state_dir}});
}

void controller::use_policy(policy::site site, std::string text,
                            control::policy_source const& source) {
  for (auto const& line : policy::needs_restart(policy_.site, site))
    services_.log.warning("waits for a restart", {{"what", line}});
  policy_.site = std::move(site);
  policy_.text = std::move(text);
  policy_.loaded_s = unix_s();
  note_policy(source);
  brain_->set_plan(plan_of(policy_.site, policy_.text));
  if (up_) up_->plan_changed();
  services_.log.info("policy in force", {{"hash", fmt::format("{:016x}", brain_->policy().hash)},
                                         {"supplies", brain_->policy().supplies.size()},
                                         {"classes", policy_.site.classes.size()}});
}

bool controller::keep_applied(std::string const& text) {
  return store_.keep_applied(file_text_, text);
}

void controller::reload() {
  try {
    control::config const fresh = services_.reload();
    std::unique_ptr<wire::security> keys;
    if (!fresh.keys.empty()) {
      keys = std::make_unique<wire::security>(wire::read_keys(fresh.keys));
      if (above_) renew_above(*keys);
      below_->reload(keys.get());
      keys_ = std::move(keys);
    }
    if (!fresh.policy.empty() && !up_) {
      std::string const text = policy::read_policy_text(fresh.policy);
      policy::site site = policy::parse_policy(text, fresh.policy);
      // The file was loaded on purpose: it ends what was applied over the socket.
      file_text_ = text;
      store_.forget_applied();
      if (text != policy_.text) use_policy(std::move(site), text, {fresh.policy});
    }
    config_.policy = fresh.policy;
    services_.log.info("configuration read again");
  } catch (error const& e) {
    services_.metrics.add(control::metric::policy_rejected_total);
    services_.log.error("reload refused, everything stays", {{"why", e.what()}});
  }
}

void controller::overrides_changed() {
  overrides_.drop_empty();
  brain_->set_overrides(&overrides_);
  if (!store_.keep(overrides_))
    services_.log.error("overrides are not saved", {{"dir", config_.state_dir}});
}

// ---------------------------------------------------------------------------- children

void controller::hear(wire::parent_socket::incoming& m, std::int64_t now) {
  auto const age = m.head.minor >= wire::minor_of_gates ? gate_book::age::able
                   : m.who == wire::role::relay         ? gate_book::age::old_relay
                                                        : gate_book::age::old_node;
  gates_->heard(m.child, *m.name, m.head.incarnation, now, age);
  hear_gates(m.child, m.body, now);
  if (auto* report = std::get_if<wire::report>(&m.body))
    brain_->report(m.child, *report, now);
  else if (auto* hello = std::get_if<wire::hello>(&m.body))
    brain_->hello(m.child, *hello, {*m.name, m.head.incarnation}, now, *this);
  else if (auto* jobs = std::get_if<wire::job_list>(&m.body))
    brain_->jobs(m.child, *jobs, now);
  else if (auto* question = std::get_if<wire::question>(&m.body))
    hear_question(m.child, *m.name, *question, now);
  else if (std::holds_alternative<wire::bye>(m.body))
    brain_->bye(m.child, now);
}

bool controller::is_parent_heard() const {
  return is_welcome_ && up_ && !up_->is_silent(boot_ns());
}

int run(control::config const& config, control::services& services) {
  controller c(config, services);
  return c.run();
}

}  // namespace sluice::cluster
