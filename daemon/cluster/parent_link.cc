// SPDX-License-Identifier: Apache-2.0
#include "cluster/parent_link.h"

#include "base/clock.h"
#include "base/error.h"
#include "wire/keys.h"

namespace sluice::cluster {

namespace {

constexpr std::int64_t away_ns = 1'000'000'000;  // leases may have ended by then
constexpr std::int64_t announce_every_ns = 10'000'000'000;
constexpr std::size_t jobs_per_list = 2000;  // some 200 KB; a relay's port takes a megabyte

}  // namespace

parent_link::parent_link(runtime::config const& config, runtime::services& services, arbiter& below)
    : config_(config),
      services_(services),
      below_(below),
      side_(below, services.incarnation),
      up_(wire::child_socket::make(*services.zmq, config.parents, services.keys,
                                   services.incarnation),
          {wire::role::relay, config.name}, config.parents.size(), services.log) {
  side_.plan_changed();
  recall_lease(boot_ns());
}

std::vector<std::uint32_t> parent_link::supply_keys() const {
  std::vector<std::uint32_t> out;
  for (supply_row const& s : below_.policy().supplies)
    out.push_back(s.capacity == 0 ? runtime::no_key : s.key);
  return out;
}

/// Without a memory it is not known what was lent, and until when: nothing is ours before M.
void parent_link::recall_lease(time_ns now) {
  try {
    memory_ = std::make_unique<runtime::lease_file>(config_.state_dir + "/lease");
  } catch (error const& e) {
    services_.log.error("lease cannot be kept", {{"why", e.what()}});
    return side_.booted(now);
  }
  if (auto const kept = memory_->read())
    side_.remember(runtime::memory_of(*kept, supply_keys()), now);
  else
    side_.booted(now);
}

void parent_link::keep_lease() {
  if (!memory_) return;
  bool const is_kept = memory_->write(runtime::kept_of(side_.up().memory(), supply_keys()));
  if (is_kept != is_kept_)
    services_.log.error(is_kept ? "lease can be kept again" : "lease cannot be kept");
  is_kept_ = is_kept;
}

runtime::uplink::news parent_link::hear(time_ns now) {
  auto news = up_.receive(now);
  if (news.welcome) {
    announced_at_ = 0;
    side_.on_welcome(*news.welcome);
  }
  if (up_.is_welcome())
    for (auto const& g : news.grants) side_.on_grant(g, now);
  return news;
}

void parent_link::talk(time_ns now, bool demand_turned) {
  if (!up_.is_welcome() || !side_.wants_to_report(now, demand_turned)) return;
  announce_jobs(now);
  wire::report const& report = side_.make_report(now);
  keep_lease();
  // One that does not leave only makes us think that we lent: the safe direction.
  bool const left = up_.send(report, now);
  side_.sent(now);
  if (!left) side_.lost_parent();
}

/// All jobs now and then, new ones at once. A relay sums over its children.
void parent_link::announce_jobs(time_ns now) {
  bool const all = announced_at_ == 0 || now - announced_at_ >= announce_every_ns;
  if (!all && !below_.who().has_new_jobs) return;
  if (all) announced_at_ = now;
  wire::job_list list;
  for (wire::job_entry& e : jobs_below(below_.who(), all)) {
    list.jobs.push_back(std::move(e));
    if (list.jobs.size() < jobs_per_list) continue;
    up_.send(list);
    list.jobs.clear();
  }
  if (!list.jobs.empty()) up_.send(list);
  below_.announced();
}

/// An unchanged pair of keys disturbs nobody.
void parent_link::renew(wire::security const* old, wire::security const& fresh) {
  if (old != nullptr && wire::speak_alike(*old, fresh)) return;
  up_.replace(
      wire::child_socket::make(*services_.zmq, config_.parents, &fresh, services_.incarnation));
  side_.lost_parent();
  services_.log.info("keys read again", {{"keys", config_.keys}});
}

void parent_link::look_after(time_ns now) {
  bool const was_welcome = up_.is_welcome();
  bool const is_silent = side_.is_silent(now);
  up_.maintain(is_silent, below_.policy().hash, now);
  if (was_welcome && !up_.is_welcome()) side_.lost_parent();
  // Whoever was away, it or we: by now it may have cleared what it knew of our jobs.
  if (is_silent) return;
  if (now - heard_at_ > away_ns) announced_at_ = 0;
  heard_at_ = now;
}

}  // namespace sluice::cluster
