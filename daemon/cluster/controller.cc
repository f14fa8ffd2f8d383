// SPDX-License-Identifier: Apache-2.0
#include "cluster/controller.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/most_supplies.h"
#include "core/durations.h"
#include "policy/policy.h"
#include "policy/supply.h"
#include "verbs/serve.h"

namespace sluice::cluster {

namespace {

constexpr unsigned most_at_once = 2000;
constexpr std::int64_t most_flood_ns = second_ns;
constexpr std::int64_t least_spacing_ns = 20'000'000;
// Nodes that hear of a new supply lend of it with their next reports.
constexpr std::int64_t least_patience_ns = 5 * second_ns, patience_cycles = 5;

bool is_relay(runtime::config const& c) { return c.role == runtime::role_kind::relay; }

lease::timers timers_for(runtime::config const& c, policy::site const& site) {
  std::int64_t const usual = runtime::config{}.cycle_ns;
  std::int64_t const cycle = c.cycle_ns != usual ? c.cycle_ns : site.control.cycle_ns;
  // A relay learns its level from its parent; one below the cluster is the least it can be.
  unsigned const level = is_relay(c) ? 1 : 0;
  return lease::timers_of(cycle, site.control.lease_ns, level);
}

std::unique_ptr<arbiter> make_arbiter(runtime::config const& c, policy_keeper const& policy,
                                      std::uint64_t incarnation) {
  arbiter::settings set;
  set.who = is_relay(c) ? wire::role::relay : wire::role::cluster;
  set.name = c.name;
  set.time = timers_for(c, policy.site());
  return std::make_unique<arbiter>(set, policy_table_of(policy.site(), policy.text()), incarnation,
                                   boot_ns());
}

change_files files_of_changes(runtime::config const& c, runtime::logger& log) {
  change_files own(c.state_dir);
  if (c.shared_dir.empty()) return own;
  if (!own.is_empty())
    log.warning("changes by hand of a start without --shared-dir are not used",
                {{"dir", c.state_dir}});
  return change_files(c.shared_dir, c.name);
}

/// Each policy leaves its supplies behind until their leases have ended: a script that applies
/// without pause must not fill the memory.
void check_room(arbiter const& a, policy_table next, time_ns now) {
  constexpr std::size_t most_rows = 4 * most_supplies;
  std::size_t const rows = a.rows_with(std::move(next), now);
  if (rows <= most_rows) return;
  throw usage_error(
      fmt::format("too many supplies of earlier policies are still in use: with these there would "
                  "be {}, at most {}; apply it again when their leases or their jobs have ended",
                  rows, most_rows));
}

}  // namespace

controller::controller(runtime::config const& c, runtime::services& s)
    : config_(c),
      services_(s),
      changes_(files_of_changes(c, s.log), s.log),
      policy_(c, s, changes_.applied()),
      arbiter_(make_arbiter(c, policy_, s.incarnation)),
      questions_([this](std::uint32_t child, wire::answer const& a) { send(child, a); }),
      gates_(c.state_dir + "/gates.json", is_relay(c), s.incarnation, s.log),
      figures_(s) {
  if (policy_.is_over_another(changes_.applied())) changes_.forget_applied();
  arbiter_->set_overrides(&changes_.book());
  if (is_relay(c)) parent_ = std::make_unique<parent_link>(config_, s, *arbiter_);
  below_ = wire::parent_socket::bind(*s.zmq, c.listen, s.keys, s.incarnation,
                                     {.terms = {.cycle_ns = arbiter_->set().time.cycle_ns}});
}

controller::~controller() = default;

void controller::open_socket(verbs::role& role) {
  role_ = &role;
  local_ = local::server::open(
      config_.run_dir + "/" + local::socket_name, geteuid() == 0 ? 0666 : 0600,
      [this](local::peer const& who, nlohmann::json const& request) {
        return changes_.kept().hold(who, [&] { return verbs::serve(*role_, who, request); });
      },
      services_.owner_of);
  services_.log.info("listening", {{"address", below_->address()},
                                   {"role", role.kind()},
                                   {"supplies", arbiter_->policy().supplies.size()}});
}

bool controller::send(std::uint32_t child, wire::message const& m) {
  return below_->send(child, m, arbiter_->cycle());
}

// ---- policy and overrides

void controller::use_policy(std::string const& text, runtime::policy_source const& source) {
  time_ns const now = boot_ns();
  policy::site site = policy::parse_policy(text, source.from);
  // A relay follows its parent, which has refused what is too much.
  if (!parent_) check_room(*arbiter_, policy_table_of(site, text), now);
  policy_.use(std::move(site), text, source);
  if (parent_) parent_->serve(now);
  auto const was = arbiter_->policy().supplies;
  auto const classes = arbiter_->policy().classes;
  arbiter_->set_policy(policy_table_of(policy_.site(), policy_.text()), now);
  for (std::uint32_t s : arbiter_->renewed()) figures_.forget(was[s], classes);
  if (parent_) parent_->plan_changed();
  services_.log.info("policy in force", {{"hash", fmt::format("{:016x}", arbiter_->policy().hash)},
                                         {"supplies", arbiter_->policy().supplies.size()},
                                         {"classes", policy_.site().classes.size()}});
}

void controller::apply_policy(std::string const& text, runtime::policy_source const& source) {
  use_policy(text, source);
  changes_.set_applied(policy_.as_applied(text));
}

/// One that nobody here asked for. True: it is in force now.
bool controller::take_policy(std::string const& text, std::string const& from) {
  std::uint64_t const hash = policy::policy_hash(text);
  if (hash == arbiter_->policy().hash || hash == refused_policy_) return false;
  try {
    use_policy(text, {from});
    return true;
  } catch (error const& e) {
    refused_policy_ = hash;
    services_.metrics.add(runtime::metric::policy_rejected_total);
    services_.log.error("policy refused, the old one stays", {{"why", e.what()}});
    return false;
  }
}

change_keeper::standing controller::standing(std::int64_t now) const {
  if (config_.shared_dir.empty()) return {now, true, 0, unix_s()};
  return {now, arbiter_->ledger().is_ruling(now),
          std::max(least_patience_ns, patience_cycles * arbiter_->set().time.cycle_ns), unix_s()};
}

/// What another controller has changed is followed. What was applied before our start, over another
/// file than we started with, is over.
void controller::turn_changes(std::int64_t now) {
  bool const has_read = changes_.has_read();
  if (!changes_.turn(standing(now))) return;
  arbiter_->set_overrides(&changes_.book());
  std::string const next = policy_keeper::over(policy_.file_text(), changes_.applied());
  bool const is_other = policy_.is_over_another(changes_.applied());
  if (is_other && !has_read)
    changes_.forget_applied();
  else if (is_other)
    services_.log.warning("the policy of the other controller was applied over another file",
                          {{"ours", config_.policy}});
  take_policy(next, config_.shared_dir);
}

// A list that is gone, or was cut to nothing, is an accident: all nodes would be strangers. One
// that `sluiced keys revoke` took the last name off has a comment still.
std::unique_ptr<wire::security> controller::keys_of(std::string const& dir) const {
  auto keys = std::make_unique<wire::security>(wire::read_keys(dir));
  wire::security const* const old = keys_in_use();
  if (old != nullptr && !old->allowed.empty() && !keys->has_list)
    throw usage_error(fmt::format(
        "{}/allowed: missing or empty, and {} may connect now; `sluiced keys revoke` takes names "
        "off",
        dir, old->allowed.size()));
  return keys;
}

wire::security const* controller::keys_in_use() const {
  return keys_ ? keys_.get() : services_.keys;
}

void controller::use_keys(std::unique_ptr<wire::security> keys, std::string const& dir) {
  if (parent_) parent_->renew(keys_in_use(), *keys);
  below_->reload(keys.get());
  if (services_.keys != nullptr && services_.keys->secret_key != keys->secret_key)
    services_.log.warning("waits for a restart", {{"what", "the pair of keys in " + dir}});
  keys_ = std::move(keys);
}

void controller::reload() {
  try {
    runtime::config const fresh = services_.reload();
    auto keys = fresh.keys.empty() ? nullptr : keys_of(fresh.keys);
    if (!fresh.policy.empty() && !parent_) reload_policy(fresh.policy);
    if (keys) use_keys(std::move(keys), fresh.keys);
    config_.policy = fresh.policy;
    services_.log.info("configuration read again");
  } catch (error const& e) {
    services_.metrics.add(runtime::metric::policy_rejected_total);
    services_.log.error("reload refused, everything stays", {{"why", e.what()}});
  }
}

void controller::reload_policy(std::string const& file) {
  auto const text = policy_.changed_text(file);
  if (!text) return;
  // The other controller may have read this text, and applied another one over it, before us.
  bool const is_shared = !config_.shared_dir.empty();
  std::string const next = is_shared ? policy_keeper::over(*text, changes_.applied()) : *text;
  if (next != policy_.text()) use_policy(next, {file});
  policy_.follow_file(*text);
  if (next == *text)
    changes_.forget_applied();
  else
    changes_.keep_applied();
}

void controller::overrides_changed() {
  arbiter_->set_overrides(&changes_.book());
  if (changes_.keeps_changes()) changes_.kept().changed();
}

/// Who went away is not waited for: else a disk that hangs would have us hold ever more answers.
void controller::tell_kept() {
  changes_.kept().forget_if([&](std::uint64_t ticket, bool is_afar) {
    return is_afar ? !questions_.is_waiting(ticket) : !local_->is_waiting(ticket);
  });
  for (auto const& told : changes_.kept().take())
    if (told.is_afar)
      questions_.reply(told.ticket, told.text);
    else
      local_->reply(told.ticket, told.text);
}

// ---- children and the parent

void controller::hear(wire::parent_socket::incoming& m, std::int64_t now) {
  gates_.hear(m, now);
  if (auto* report = std::get_if<wire::report>(&m.body))
    arbiter_->report(m.child, *report, now);
  else if (auto* hello = std::get_if<wire::hello>(&m.body))
    arbiter_->hello(m.child, *hello, {*m.name, m.head.incarnation}, now, *this);
  else if (auto* jobs = std::get_if<wire::job_list>(&m.body))
    arbiter_->jobs(m.child, *jobs, now);
  else if (auto* question = std::get_if<wire::question>(&m.body))
    hear_question(m, *question, now);
  else if (std::holds_alternative<wire::bye>(m.body))
    arbiter_->bye(m.child, now);
}

void controller::hear_question(wire::parent_socket::incoming const& from, wire::question& q,
                               std::int64_t now) {
  if (!from.may_ask)
    services_.metrics.add(runtime::metric::local_requests_total, {"from afar", "refused"});
  bool const is_heard = parent_ && parent_->is_heard(now);
  auto const above = questions_.take(from, q, parent_ != nullptr, is_heard, now);
  if (above && !parent_->send(*above)) questions_.take_back(above->id);
}

void controller::hear_parent(std::int64_t now) {
  auto news = parent_->hear(now);
  if (news.welcome) gates_.above_anew();
  for (auto const& m : news.gates) gates_.hear_above(m, now);
  for (auto& answer : news.answers) questions_.hear(answer);
  if (!news.policy || !take_policy(*news.policy, "the policy of " + parent_->name())) return;
  if (!policy_.keep_heard(*news.policy))
    services_.log.error("policy is not saved", {{"dir", config_.state_dir}});
}

/// False: the cap was reached and there may be more. Half a cycle of messages is enough at a time,
/// however few they are.
bool controller::drain(std::int64_t now) {
  std::int64_t const end_ns =
      steady_ns() + std::min(arbiter_->set().time.cycle_ns, most_flood_ns) / 2;
  if (parent_) hear_parent(now);
  for (unsigned i = 0; i < most_at_once; ++i) {
    auto m = below_->receive();
    if (!m) return true;
    hear(*m, now);
    if (steady_ns() >= end_ns) break;  // one message may be long
  }
  return false;
}

// ---- the loop

void controller::settle(std::int64_t now) {
  bool const demand_turned = arbiter_->edge();
  if (parent_) parent_->serve(now);
  std::int64_t const began = steady_ns();
  if (arbiter_->settle(now, *this)) {
    settle_ns_ = steady_ns() - began;
    // Never more than a quarter of the time on allocations between cycles.
    arbiter_->set_spacing(std::max(least_spacing_ns, 4 * settle_ns_));
    figures_.remember(*arbiter_, now);
  }
  if (parent_) parent_->talk(now, demand_turned);
  settle_gates(now);
  figures_.tell(arbiter_->take_notices());
}

void controller::settle_gates(std::int64_t now) {
  epochs::gate_keeper::post out;
  out.to_child = [this](std::uint32_t child, wire::message const& m) { send(child, m); };
  if (parent_ && parent_->is_welcome())
    out.to_parent = [this](wire::message const& m) { return parent_->send_gate(m); };
  gates_.settle(now, out);
}

void controller::answer_questions(std::int64_t now) {
  questions_.answer_some(
      [this](local::peer const& who, std::string const& text, std::string const& through) {
        auto const serve = [&](local::peer const& by, nlohmann::json const& request) {
          return changes_.kept().hold(by, [&] {
            nlohmann::json answer = verbs::serve(*role_, by, request, through);
            answer["answered_by"] = "cluster " + config_.name;
            return answer;
          });
        };
        return local::answer_text(serve, who, text.data(), text.size());
      },
      now);
}

void controller::each_second(std::int64_t now) {
  second_at_ = now;
  local_->serve(steady_ns());  // its time limits
  questions_.forget_old(now);
  if (changes_.take_back(arbiter_->who(), now, dated_now()))
    arbiter_->set_overrides(&changes_.book());
  for (std::string line = below_->complaint(); !line.empty(); line = below_->complaint())
    services_.log.warning("peer refused", {{"what", line}});
  publish(now);
}

void controller::publish(std::int64_t now) {
  figures::standing at = {settle_ns_, policy_.loaded_s(), {}, below_->counts(), listens_at()};
  if (parent_) at.is_parent_heard = parent_->is_heard(now);
  verbs::publish(services_.metrics, local_->in_use());
  figures_.publish(*arbiter_, at, now);
}

int controller::wait_ms(std::int64_t now) const {
  if (!questions_.is_idle()) return 0;
  std::int64_t until = std::min(arbiter_->due(), second_at_ + second_ns);
  if (parent_ && parent_->is_welcome()) until = std::min(until, parent_->due());
  if (auto const due = changes_.due_ns()) until = std::min(until, *due);
  return static_cast<int>(std::clamp<std::int64_t>((until - now + 999'999) / 1'000'000, 0, 100));
}

/// True: stop.
bool controller::take_orders() {
  for (auto o = runtime::next_order(services_.signal_fd); o != runtime::order::none;
       o = runtime::next_order(services_.signal_fd)) {
    if (o == runtime::order::stop) return true;
    services_.notify.reloading(steady_ns());
    reload();
    services_.notify.ready();
  }
  return false;
}

/// False: stop.
bool controller::wait(bool drained) {
  zmq_pollitem_t items[] = {
      {nullptr, services_.signal_fd, ZMQ_POLLIN, 0},
      {nullptr, local_->fd(), ZMQ_POLLIN, 0},
      {nullptr, changes_.fd(), ZMQ_POLLIN, 0},
      {below_->zmq_handle(), 0, ZMQ_POLLIN, 0},
      {parent_ ? parent_->zmq_handle() : nullptr, 0, ZMQ_POLLIN, 0},
      {parent_ ? parent_->monitor_handle() : nullptr, 0, ZMQ_POLLIN, 0},
  };
  int const count = !parent_ ? 4 : parent_->monitor_handle() != nullptr ? 6 : 5;
  if (zmq_poll(items, count, drained ? wait_ms(boot_ns()) : 0) < 0 && errno != EINTR)
    throw sluice_error(std::string("zmq_poll: ") + zmq_strerror(errno));
  is_asked_ = items[1].revents != 0;
  return items[0].revents == 0 || !take_orders();
}

int controller::run() {
  services_.notify.ready();
  bool drained = true, is_settled = true;
  std::int64_t began = 0;  // of the drains since the last settle
  while (wait(drained)) {
    std::int64_t const now = boot_ns();
    if (is_settled) began = now;
    drained = drain(now);
    // A flood may delay an allocation by two cycles; after a stall there is no such hurry.
    is_settled =
        drained || boot_ns() - began > std::min(2 * arbiter_->set().time.cycle_ns, most_flood_ns);
    if (!is_settled) continue;
    if (is_asked_) local_->serve(steady_ns());
    settle(boot_ns());
    std::int64_t const settled_at = boot_ns();
    answer_questions(settled_at);
    turn_changes(settled_at);
    tell_kept();
    if (parent_) parent_->look_after(settled_at);
    if (settled_at - second_at_ >= second_ns) each_second(settled_at);
    services_.notify.alive(steady_ns());
  }
  services_.notify.stopping();
  services_.log.info("stopping");
  changes_.finish([this] { return standing(boot_ns()); });
  tell_kept();
  return 0;
}

}  // namespace sluice::cluster
