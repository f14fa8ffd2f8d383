// SPDX-License-Identifier: Apache-2.0
// What a relay says to its parent and hears from it. Which address it speaks to is decided here:
// the next one when the present one has been silent, as a node does.
#include <unordered_map>

#include "cluster/clock.h"
#include "cluster/controller.h"
#include "policy/error.h"

namespace sluice::cluster {

namespace {

constexpr std::int64_t hello_every_ns = 200'000'000;
constexpr std::int64_t away_ns = 1'000'000'000;  // leases may have ended by then
constexpr std::int64_t look_again_ns = 1'000'000'000;
constexpr std::int64_t announce_every_ns = 10'000'000'000;
constexpr std::size_t jobs_per_list = 2000;  // some 200 KB; a relay's port takes a megabyte

}  // namespace

void controller::hear_above(wire::message& m, std::int64_t now) {
  hear_gates_above(m, now);
  if (auto* g = std::get_if<wire::grant>(&m)) {
    if (is_welcome_) up_->on_grant(*g, now);
  } else if (auto* w = std::get_if<wire::welcome>(&m)) {
    if (!choice_.welcomed(w->lacks_pool, now)) return walk();
    if (w->name != parent_name_)
      services_.log.info("parent found", {{"parent", w->name}, {"address", above_->address()}});
    parent_name_ = w->name;
    parent_minor_ = w->minor;
    above_->parent_is(w->who);
    is_welcome_ = true;
    announced_at_ = 0;
    up_->on_welcome(*w);
    gates_->above_anew();
  } else if (auto* answer = std::get_if<wire::answer>(&m)) {
    hear_answer(*answer);
  } else if (auto* part = std::get_if<wire::policy_part>(&m)) {
    if (auto whole = parts_.add(part->hash, part->total_bytes, part->offset, part->text))
      use_heard_policy(*whole);
  } else if (std::holds_alternative<wire::restart>(m) || std::holds_alternative<wire::bye>(m)) {
    is_welcome_ = false;
    hello_at_ = 0;
  } else if (auto* e = std::get_if<wire::error>(&m)) {
    services_.log.warning("refused by the parent", {{"why", e->text}});
    is_welcome_ = false;
    hello_at_ = now + 5'000'000'000;
  }
}

void controller::use_heard_policy(std::string const& text) {
  std::uint64_t const hash = policy::policy_hash(text);
  if (hash == brain_->policy().hash || hash == refused_policy_) return;
  try {
    std::string const from = "the policy of " + parent_name_;
    use_policy(policy::parse_policy(text, from), text, {from});
    if (!store_.keep_heard(text))
      services_.log.error("policy is not saved", {{"dir", config_.state_dir}});
  } catch (error const& e) {
    refused_policy_ = hash;
    services_.metrics.add(control::metric::policy_rejected_total);
    services_.log.error("policy refused, the old one stays", {{"why", e.what()}});
  }
}

std::vector<std::uint32_t> controller::supply_keys() const {
  std::vector<std::uint32_t> out;
  for (supply_row const& s : brain_->policy().supplies) out.push_back(s.key);
  return out;
}

/// Without a memory it is not known what was lent, and until when: nothing is ours before M.
void controller::recall_lease(std::int64_t now) {
  try {
    lease_memory_ = std::make_unique<control::lease_file>(config_.state_dir + "/lease");
  } catch (error const& e) {
    services_.log.error("lease cannot be kept", {{"why", e.what()}});
    return up_->booted(now);
  }
  if (auto const kept = lease_memory_->read())
    up_->remember(control::memory_of(*kept, supply_keys()), now);
  else
    up_->booted(now);
}

void controller::keep_lease() {
  if (!lease_memory_) return;
  bool const written = lease_memory_->write(control::kept_of(up_->up().memory(), supply_keys()));
  if (written != lease_written_)
    services_.log.error(written ? "lease can be kept again" : "lease cannot be kept");
  lease_written_ = written;
}

void controller::talk_up(std::int64_t now, bool demand_turned) {
  if (!is_welcome_ || !up_->wants_to_report(now, demand_turned)) return;
  announce_jobs(now);
  wire::report const& report = up_->make_report(now);
  keep_lease();
  // One that does not leave only makes us think that we lent: the safe direction.
  bool const left = above_->send(report, brain_->cycle());
  up_->sent(now);
  if (!left) up_->lost_parent();
}

/// All jobs now and then, new ones at once. A relay sums over its children.
void controller::announce_jobs(std::int64_t now) {
  bool const all = announced_at_ == 0 || now - announced_at_ >= announce_every_ns;
  if (!all && !brain_->who().has_new_jobs) return;
  if (all) announced_at_ = now;
  roster const& r = brain_->who();
  std::unordered_map<std::uint32_t, wire::job_entry> sums;
  for (child const& c : r.children)
    for (tenancy const& t : c.jobs) {
      job const& j = r.jobs[t.job];
      if (!all && j.is_announced) continue;
      wire::job_entry& e = sums[t.job];
      e.job = j.key;
      e.uid = j.uid;
      e.class_key = j.class_key;
      e.name = j.name;
      e.qos_class = j.qos_class;
      e.processes += t.processes;
      e.escaped += t.escaped;
    }
  wire::job_list list;
  for (auto& [row, e] : sums) {
    list.jobs.push_back(std::move(e));
    if (list.jobs.size() < jobs_per_list) continue;
    above_->send(list, brain_->cycle());
    list.jobs.clear();
  }
  if (!list.jobs.empty()) above_->send(list, brain_->cycle());
  brain_->announced();
}

void controller::walk() {
  above_->next();
  hello_at_ = 0;
  greet_again();
}

void controller::greet_again() {
  is_welcome_ = false;
  up_->lost_parent();
}

/// An unchanged pair of keys disturbs nobody.
void controller::renew_above(wire::security const& fresh) {
  wire::security const* const old = keys_ ? keys_.get() : services_.keys;
  if (old != nullptr && wire::speak_alike(*old, fresh)) return;
  above_ = wire::child_socket::make(*services_.zmq, config_.parents, &fresh, services_.incarnation);
  hello_at_ = 0;
  greet_again();
  services_.log.info("keys read again", {{"keys", config_.keys}});
}

void controller::look_after_parent(std::int64_t now) {
  if (now - maintained_at_ >= hello_every_ns) {
    maintained_at_ = now;
    std::string const line = above_->maintain(steady_ns());
    if (!line.empty()) services_.log.info("connection to the parent", {{"what", line}});
  }
  bool const lost = !is_welcome_ || up_->is_silent(now);
  // Whoever was away, it or we: by now it may have cleared what it knew of our jobs.
  if (!lost && now - heard_at_ > away_ns) announced_at_ = 0;
  if (!lost) heard_at_ = now;
  bool const walks = choice_.leaves(lost, now);
  bool const looks_again = now - heard_at_ >= look_again_ns;
  if (is_welcome_ && walks && !lost)
    services_.log.info("looking for a parent with the pool", {{"from", parent_name_}});
  else if (is_welcome_ && (walks || looks_again))
    services_.log.warning("parent silent", {{"parent", parent_name_}});
  if (looks_again) {
    heard_at_ = now;
    greet_again();
  }
  if (walks) walk();
  if (is_welcome_ || now - hello_at_ < hello_every_ns) return;
  hello_at_ = now;
  wire::hello h;
  h.who = wire::role::relay;
  h.name = config_.name;
  h.policy_hash = brain_->policy().hash;
  above_->send(h, brain_->cycle());
}

}  // namespace sluice::cluster
