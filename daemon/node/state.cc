// SPDX-License-Identifier: Apache-2.0
#include "node/state.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/boot_id.h"
#include "base/error.h"
#include "base/installed.h"
#include "base/rights.h"
#include "base/whole_file.h"
#include "node/job_limits.h"
#include "policy/policy.h"
#include "policy/supply.h"
#include "runtime/launcher.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"
#include "wire/message.h"

namespace sluice::node {

namespace {

std::string policy_text(std::string const& path) {
  std::string text;
  with_rights([&] { text = policy::read_policy_text(path); });
  return text;
}

std::string policy_copy(runtime::config const& c) { return c.state_dir + "/policy.json"; }
std::string overrides_path(runtime::config const& c) { return c.state_dir + "/overrides.json"; }

/// Empty: there are none.
process_teller::starter tellers_of(runtime::services& s) {
  if (s.walks == nullptr) return {};
  return [at = s.walks](std::function<void()> task) { return at->start(std::move(task)); };
}

escape_worker::starter walks_of(runtime::services& s) {
  if (s.walks != nullptr)
    return [at = s.walks](std::function<void()> task) { return at->start(std::move(task)); };
  return [](std::function<void()> const& task) { return task(), true; };
}

}  // namespace

state::state(runtime::config const& c, runtime::services& s)
    : config(c),
      services(s),
      site(c.name),
      jobs(c.run_dir, find_library(), c.name, s.log, tellers_of(s), s.owner_of, s.tidier, read_stat,
           s.far_memory),
      steered(jobs, site, overrides, loop.figures, !c.parents.empty()),
      held_back(jobs, site, overrides, loop.steps),
      promised(jobs, site, overrides, loop.figures, !c.parents.empty()),
      rates(!c.parents.empty()),
      journals(s.journal_keeper, c.journal, c.run_dir, s.log),
      lease(c, s.incarnation, s.log),
      asked(s.owner_of),
      gates(c.run_dir, s.incarnation, s.owner_of, s.far_memory, s.log),
      sums(jobs, site, overrides, loop, !c.parents.empty()),
      folders(c.run_dir),
      announced_(jobs, site, s.log),
      watch_(jobs, loop, walks_of(s), s.log) {
  moment const at = now();
  started_ns_ = at.mono_ns;
  if (s.far_memory != nullptr)
    s.far_memory->pay_by(
        {[this](uid_t owner, std::int64_t debt_ns) { return loop.waits.has_time(owner, debt_ns); },
         [this](uid_t owner, std::int64_t took_ns) { loop.waits.charge(owner, took_ns); }});
  if (!c.parents.empty()) parent = std::make_unique<parent_link>(config, s, lease, site, jobs);
  recall_overrides();
  start_policy(at);
  rates.recall_kept(lease.recall(site, at));
  jobs.asks_home([this](uid_t user) { return journals.home_of(user); });
  jobs.adopt(site);
  // The next of its name is another job.
  auto const is_gone = [known = jobs.keys()](core::job_id key, auto const&) {
    return !known.contains(key);
  };
  if (!overrides.forget_if(is_gone).empty()) keep_overrides(at);
  heed_scheduler(at);
  enforce(at);
}

// ---- policy and overrides ----

void state::start_policy(moment at) {
  bool const from_file = !has_parent() && !config.policy.empty();
  if (from_file) return use_policy(policy_text(config.policy), {config.policy}, at);
  auto const copy = read_file(policy_copy(config));
  if (!copy) return;
  try {
    use_policy(*copy, {policy_copy(config)}, at);
  } catch (error const& e) {
    services.log.warning("kept policy not usable", {{"why", e.what()}});
  }
}

void state::use_policy(std::string const& text, runtime::policy_source const& source, moment at) {
  site.apply(text, source.from, used_supplies(at));
  lease.set_own(site);
  sums.use(services.metrics);
  rates.use(site);
  steered.use();
  held_back.use();
  jobs.bind_all(site, at.mono_ns);
  promised.use();
  if (!replace_file(policy_copy(config), text))
    services.log.warning("policy cannot be kept", {{"path", policy_copy(config)}});
  if (services.policies != nullptr && !services.policies->note(text, source, unix_s()))
    services.log.warning("version of the policy is not saved", {{"dir", config.state_dir}});
  services.log.info("policy in force",
                    {{"from", source.from}, {"supplies", policy::supplies(site.site()).size()}});
  services.metrics.set(runtime::metric::policy_load_timestamp_seconds, double(unix_s()));
  for (auto const& line : absent(site.site().targets, jobs.places().files()))
    services.log.warning("policy", {{"why", line}});
  if (has_parent() && !site.is_listed())
    services.log.warning(
        "this node is not in the policy's control.nodes",
        {{"node", config.name}, {"meaning", "without its parent it keeps 0.1 % of each capacity"}});
  enforce(at);
}

/// By supply: a job has a stream of it, or the lease says something of it.
std::vector<bool> state::used_supplies(moment at) const {
  std::vector<bool> out(site.supplies().size(), false);
  for (unsigned i = 0; i < out.size(); ++i) out[i] = !lease.child.is_unused(i, at.boot_ns);
  for (auto const& j : jobs.all())
    for (auto const& s : j->streams) out[s.supply] = true;
  return out;
}

void state::reload(moment at) {
  services.notify.reloading(at.mono_ns);
  try {
    runtime::config fresh = config;
    // What the administrator wrote may be another user's file.
    if (services.reload) with_rights([&] { fresh = services.reload(); });
    if (has_parent() && !fresh.keys.empty()) parent->use_keys(fresh.keys);
    if (!has_parent() && !fresh.policy.empty())
      use_policy(policy_text(fresh.policy), {fresh.policy}, at);
    config.policy = fresh.policy;
    services.log.info("configuration read again");
  } catch (error const& e) {
    services.metrics.add(runtime::metric::policy_rejected_total);
    services.log.error("old configuration stays", {{"why", e.what()}});
  }
  services.notify.ready();
}

void state::keep_overrides(moment at) {
  kept.begin();
  bool const is_written = replace_file(overrides_path(config), overrides.to_text(boot_id()));
  if (!is_written) services.log.warning("overrides cannot be kept", {{"dir", config.state_dir}});
  kept.tried(at.mono_ns, is_written);
}

void state::recall_overrides() {
  try {
    if (auto const text = read_kept(overrides_path(config)))
      overrides = verbs::override_book::from_text(*text, wire::job_key, boot_id());
  } catch (error const& e) {
    services.log.error("overrides lost",
                       {{"why", e.what()}, {"kept_as", set_aside(overrides_path(config))}});
  }
}

void state::expire_overrides(moment at) {
  dated_moment const today = dated_now();
  bool const is_clock_set = overrides.follow_clock(today);
  auto const ended = overrides.expire(today);
  for (auto const& line : ended) services.log.info("override ended", {{"what", line}});
  if (is_clock_set || !ended.empty()) keep_overrides(at);
  if (ended.empty()) return;
  enforce(at);
  has_news = true;
}

void state::enforce(moment at) {
  rates.set_split(has_parent() && parent->is_split());
  rates.apply(site, jobs, overrides, lease.child, steered.in_force(), at);
}

// ---- measuring ----

bool state::measure(moment at) {
  jobs.look(segment::glance);
  auto const seen = sums.measure(at.mono_ns);
  held_back.look(at.mono_ns);
  if (seen.is_waiting) stir(at);
  return seen.has_begun_to_wait;
}

void state::end_cycle(moment at) {
  if (steered.is_any()) jobs.look(segment::counts);
  sums.end_cycle(at.mono_ns);
  promised.look(at.mono_ns);
  steered.look(at.mono_ns);
}

void state::tell(moment at) {
  jobs.look(segment::whole);
  sums.count();
  sums.remember(services.board, steered, at);
  runtime::metric_table& m = services.metrics;
  sums.publish(m, rates.standing(), steered, at.mono_ns);
  held_back.publish(m);
  promised.publish(m);
  journals.publish(m, at.mono_ns);
  m.set(runtime::metric::steps_total, static_cast<double>(steps));
  m.set(runtime::metric::free_job_places, static_cast<double>(jobs.free_places()));
  bool const is_silent = has_parent() && !parent->is_heard(at.boot_ns);
  if (has_parent()) m.set(runtime::metric::controller_connected, is_silent ? 0 : 1);
  m.publish(at.mono_ns, !is_silent, is_silent ? "the parent does not answer" : "");
}

// ---- jobs ----

void state::watch(moment at) {
  if (folders.is_heed_due(at.mono_ns)) heed_scheduler(at);
  if (jobs.take_wants_count()) watch_.recount();
  if (watch_.count_heads(is_stirred(reasons(), at.mono_ns), at.mono_ns)) stir(at);
  remove_ended(at);
  follow_journals();
  if (folders.is_sweep_due(at.mono_ns)) sweep(at);
  watch_.look_for_escapes(site, at.mono_ns);
}

/// Those whose last figures have come. On a busy machine their memory may take a while, or their
/// user may keep it from us.
std::vector<job*> state::seen_last(std::vector<job*> ended, std::int64_t now_ns) const {
  constexpr std::int64_t most_ns = 10'000'000'000;
  std::vector<job const*> unseen;
  for (job* const j : ended) {
    if (j->ending_ns == 0) {
      j->ending_ns = now_ns;
      j->map.ask_anew();
    }
    if (!j->is_seen_last()) unseen.push_back(j);
  }
  jobs.look_last(unseen);
  std::erase_if(ended, [&](job* j) {
    return !j->is_broken() && !j->is_seen_last() && now_ns - j->ending_ns < most_ns;
  });
  return ended;
}

/// Those that wait for their last sync are left as they are.
void state::remove_ended(moment at) {
  std::vector<job*> gone;
  for (auto const& j : jobs.all()) {
    bool const is_over = j->life.state == segment::life_state::over;
    if (is_over) gone.push_back(j.get());
    if (!is_over) j->ending_ns = 0;
  }
  gone = seen_last(std::move(gone), at.mono_ns);
  // Who came after they were counted shows in the last look.
  std::erase_if(gone, [this](job* j) { return watch_.counts_anew(*j); });
  std::erase_if(gone, [this](job const* j) { return !gates.may_end(j->folder); });
  if (gone.empty()) return;
  sums.count_last(gone, services.board, steered, at);
  bool has_forgotten = false;
  for (job* j : gone) {
    sums.keep_sums(*j);
    has_forgotten = overrides.forget(j->key) || has_forgotten;
    watch_.forget(*j);
    jobs.remove(*j, j->is_leased()   ? "its owner holds leases on its files"
                    : j->is_broken() ? "its segment was cut short"
                                     : "nobody is left in it");
    has_news = true;
    watch_.recount();
  }
  if (has_forgotten) keep_overrides(at);
}

/// Jobs that waited for their user's files are tried again when something has changed there.
void state::heed_journals(moment at) {
  journals.listen(at.mono_ns);
  if (std::exchange(journal_changes_, journals.changes()) == journals.changes()) return;
  follow_journals();
  jobs.may_have_room();
  heed_scheduler(at);
}

void state::follow_journals() {
  if (journals.is_there()) journals.follow(jobs.users_of_journals(journals.known()));
}

/// Jobs that began without a daemon, and whose programs did not clear up.
void state::sweep(moment at) {
  segment::collect_garbage_if_free(jobs.run_dir());
  jobs.look_at_left_alone(site);
  jobs.keep_sizes();
  folders.swept(at.mono_ns);
}

void state::heed_scheduler(moment at) {
  folders.heeded(at.mono_ns);
  // A job made before the policy was heard of would not be metered by it.
  if (!site.is_set() && has_parent() && at.mono_ns - started_ns_ < first_policy_ns) return;
  if (!journals.is_settled()) return;
  auto const changed = announced_.look(at.mono_ns);
  for (job* j : changed.withdrawn) release_job(*j);
  if (changed.made.empty()) return;
  came(at);
  enforce(at);
  for (job* const j : changed.made) jobs.settle(*j);
  has_news = true;
}

job* state::take_announced(std::string const& name, moment at) {
  job* const made = announced_.take(name, at.mono_ns);
  if (made == nullptr) return nullptr;
  came(at);
  enforce(at);
  jobs.settle(*made);
  has_news = true;
  return made;
}

void state::release_job(job& j) {
  jobs.look_last(j);
  if (!j.is_broken() && j.record.scheduler->is_metered) {
    std::string text;
    auto const read = [&] { text = result_text(j, terms_of(j), jobs.run_dir()); };
    loop.figures.spend_anyhow(j.owner, read);
    keep_result(j, text, jobs.run_dir(), services.owner_of, services.log);
  }
  jobs.release(j);
  watch_.recount();
  services.log.info("job released", {{"job", j.record.name}, {"uid", j.record.uid}});
}

/// The job ends, so who has no time left is told nevertheless.
std::string state::outcome_of(job const& j) {
  std::string out;
  jobs.look_last(j);
  loop.figures.spend_anyhow(j.owner, [&] { out = outcome_line(j, terms_of(j)); });
  return out;
}

result_terms state::terms_of(job const& j) const {
  return {class_in_force(j, overrides.find(j.key)), config.name};
}

void state::came(moment at) {
  stir(at);
  follow_journals();
  watch_.came(at.mono_ns);
}

void state::turn_gates(moment at) {
  std::vector<epochs::job_facts> facts;
  facts.reserve(jobs.all().size());
  for (auto const& j : jobs.all())
    facts.push_back({j->folder, j->record.name, j->key, j->record.uid, &j->record.after,
                     j->life.state == segment::life_state::used});
  gates.turn(facts, has_parent() ? &parent->uplink() : nullptr, at.mono_ns);
}

step_reasons state::reasons() const {
  step_reasons r;
  r.local_ns = config.local_cycle_ns;
  r.stirred_ns = stirred_ns_;
  r.has_jobs = !jobs.all().empty() || watch_.is_walking() || (has_parent() && has_news);
  r.heed_ns = std::min(folders.heed_ns(announced_.due_ns()), journals.due_ns());
  r.sweep_ns = folders.sweep_ns();
  r.background_ns = held_back.due_ns();
  return r;
}

// ---- the parent ----

void state::listen(moment at) {
  if (!has_parent()) return;
  auto news = parent->hear(at);
  if (news.welcome) gates.welcomed();
  if (news.policy && policy::policy_hash(*news.policy) != refused_policy_) {
    try {
      use_policy(*news.policy, {"the policy of " + parent->name()}, at);
    } catch (error const& e) {
      refused_policy_ = policy::policy_hash(*news.policy);
      services.metrics.add(runtime::metric::policy_rejected_total);
      services.log.error("policy refused, the old one stays", {{"why", e.what()}});
    }
  }
  for (auto const& m : news.gates) gates.hear(m);
  for (auto& a : news.answers) asked.hear(std::move(a));
  if (news.grants.empty() && !news.is_displaced) return;
  parent->apply(news.grants, at);
  enforce(at);
}

void state::talk(bool due, moment at) {
  if (!has_parent()) return;
  using reason = parent_link::reason;
  reason const why = parent->turn(due, has_news, cycle_ns(), at);
  if (why == reason::none) return;
  parent->announce_jobs(overrides, at);
  bool const is_early = !due && why == reason::early;
  if (is_early) jobs.look(segment::glance);
  if (is_early) end_cycle(at);
  wire::report const r = parent->prepare(overrides, steered, used_supplies(at), why, at);
  enforce(at);
  parent->send(r, at);
  if (why != reason::acknowledge) has_news = false;
}

std::int64_t state::cycle_ns() const {
  if (has_parent()) {
    std::int64_t const told_ns = parent->cycle_ns();
    return told_ns != 0 ? told_ns : config.cycle_ns;
  }
  return site.is_set() ? site.site().control.cycle_ns : config.cycle_ns;
}

}  // namespace sluice::node
