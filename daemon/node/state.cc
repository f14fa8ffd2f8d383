// SPDX-License-Identifier: Apache-2.0
#include "node/state.h"

#include <algorithm>
#include <filesystem>

#include "abi/segment.h"
#include "node/clock.h"
#include "node/outcome.h"
#include "node/state_files.h"
#include "policy/error.h"
#include "segment/jobs.h"
#include "segment/library.h"
#include "segment/order_look.h"
#include "segment/run_dir.h"
#include "wire/keys.h"

namespace sluice::node {

namespace {

constexpr unsigned heads_per_tick = 64;
constexpr std::int64_t count_every_ns = 200'000'000, bury_after_ns = 1'000'000'000;
constexpr std::int64_t escape_every_ns = 4'000'000'000, heed_every_ns = 500'000'000;
constexpr std::int64_t sweep_every_ns = 5'000'000'000;

constexpr std::int64_t first_policy_ns = 2'000'000'000;

constexpr std::uint64_t first_pid_space = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel

real_proc const machine;

std::string policy_copy(control::config const& c) { return c.state_dir + "/policy.json"; }

std::unique_ptr<uplink> make_uplink(control::config const& c, control::services& s) {
  if (c.parents.empty()) return nullptr;
  auto socket = wire::child_socket::make(*s.zmq, c.parents, s.keys, s.incarnation);
  return std::make_unique<uplink>(std::move(socket), c.name, c.parents.size(), s.log);
}

bool is_process(std::uint32_t pid, std::uint64_t start_ticks) {
  std::uint64_t const found = segment::start_ticks(pid);
  return found != 0 && abi::is_start(start_ticks, found);
}

}  // namespace

state::state(control::config const& c, control::services& s)
    : config(c),
      services(s),
      site(c.name),
      jobs(c.run_dir, segment::find_library(), c.name, s.log),
      rates(!c.parents.empty()),
      log(s.log_keeper, c.log, segment::log_status_path(c.run_dir), s.log),
      lease(lease::timers_of(c.cycle_ns, second_ns, 0), s.incarnation),
      lease_memory(c.state_dir + "/lease"),
      up(make_uplink(c, s)),
      gates(c.run_dir, s.incarnation, s.log),
      heads_(is_process, segment::own_pid_space()),
      escapes_(
          machine, [this](std::string const& folder) { return counted_bytes(folder); },
          segment::own_pid_space() == first_pid_space) {
  moment const at = now();
  begun_ns_ = started_ns_ = at.mono_ns;
  if (auto const text = read_state(config.state_dir + "/overrides.json"))
    overrides = override_book::from_text(*text);
  start_policy(at);
  recall_lease(at);
  jobs.adopt(site);
  // The next of its name is another job.
  if (overrides.keep_only(segment::list_jobs(jobs.run_dir()))) keep_overrides();
  heed_scheduler(at);
  enforce(at);
}

std::int64_t state::cycle_ns() const {
  if (welcomed_ && welcomed_->cycle_ns >= 10'000'000) return welcomed_->cycle_ns;
  return site.is_set() && !has_parent() ? site.site().control.cycle_ns : config.cycle_ns;
}

// ---- policy ----

void state::start_policy(moment at) {
  bool const from_file = !has_parent() && !config.policy.empty();
  if (from_file) return use_policy(policy::read_policy_text(config.policy), {config.policy}, at);
  auto const copy = read_state(policy_copy(config));
  if (!copy) return;
  try {
    use_policy(*copy, {policy_copy(config)}, at);
  } catch (error const& e) {
    services.log.warning("kept policy not usable", {{"why", e.what()}});
  }
}

void state::use_policy(std::string const& text, control::policy_source const& source, moment at) {
  site.apply(text, source.from);
  set_own();
  rates.use(site);
  jobs.bind_all(site, at.mono_ns);
  if (!write_state(policy_copy(config), text))
    services.log.warning("policy cannot be kept", {{"path", policy_copy(config)}});
  if (services.policies != nullptr && !services.policies->note(text, source, unix_s()))
    services.log.warning("version of the policy is not saved", {{"dir", config.state_dir}});
  services.log.info("policy in force",
                    {{"from", source.from}, {"supplies", policy::supplies(site.site()).size()}});
  services.metrics.set(control::metric::policy_load_timestamp_seconds, double(unix_s()));
  if (has_parent() && !site.is_listed())
    services.log.warning(
        "this node is not in the policy's control.nodes",
        {{"node", config.name}, {"meaning", "without its parent it keeps 0.1 % of each capacity"}});
  enforce(at);
}

void state::reload(moment at) {
  services.notify.reloading(at.mono_ns);
  try {
    control::config const fresh = services.reload ? services.reload() : config;
    use_keys(fresh);
    if (!has_parent() && !fresh.policy.empty())
      use_policy(policy::read_policy_text(fresh.policy), {fresh.policy}, at);
    config.policy = fresh.policy;
    services.log.info("configuration read again");
  } catch (error const& e) {
    services.metrics.add(control::metric::policy_rejected_total);
    services.log.error("old configuration stays", {{"why", e.what()}});
  }
  services.notify.ready();
}

/// An unchanged pair of keys disturbs nobody.
void state::use_keys(control::config const& fresh) {
  if (!has_parent() || fresh.keys.empty()) return;
  auto keys = std::make_unique<wire::security>(wire::read_keys(fresh.keys));
  wire::security const* const old = keys_ ? keys_.get() : services.keys;
  if (old != nullptr && wire::speak_alike(*old, *keys)) return;
  up->replace(
      wire::child_socket::make(*services.zmq, config.parents, keys.get(), services.incarnation));
  keys_ = std::move(keys);
  services.log.info("keys read again", {{"keys", fresh.keys}});
}

// ---- the lease ----

void state::set_own() {
  std::vector<lease::child::own> own;
  for (auto const& slot : site.supplies())
    own.push_back({slot.floor, slot.escrow, site.is_listed() ? 1u : 0u});
  lease.set_own(own);
}

void state::recall_lease(moment at) {
  // Until the parent says otherwise: what was lent before was lent by the kept policy's times.
  if (site.is_set()) {
    auto const& control = site.site().control;
    lease.set_timers(lease::timers_of(control.cycle_ns, control.lease_ns, 0));
  }
  auto const kept = lease_memory.read();
  if (!kept) return lease.booted(at.boot_ns);
  lease::child_memory const m = control::memory_of(*kept, site.keys());
  lease.remember(m, at.boot_ns);
  std::vector<rate> last;
  for (auto const& e : m.supply) last.push_back(e.value);
  rates.recall_kept(std::move(last));
}

void state::keep_lease() {
  if (!has_parent()) return;
  bool const written = lease_memory.write(control::kept_of(lease.memory(), site.keys()));
  if (written != lease_written_)
    services.log.error(written ? "lease can be kept again" : "lease cannot be kept");
  lease_written_ = written;
}

// ---- measuring ----

bool state::measure(moment at) {
  bool edge = false;
  for (auto const& j : jobs.all()) {
    if (j->is_broken()) continue;
    for (auto& s : j->streams) {
      sample const seen = look(j->memory(), s.channel, at.mono_ns);
      edge = s.measured.tick(seen, s.in_force.now, at.mono_ns) || edge;
    }
  }
  return edge;
}

void state::end_cycle(moment at) {
  ++cycle;
  for (auto const& j : jobs.all()) {
    if (j->is_broken()) continue;
    for (auto& s : j->streams) {
      std::int64_t const span_ns = at.mono_ns - s.measured.since_ns();
      s.last = s.measured.take(s.unit, waits_so_far(j->memory(), s.channel), at.mono_ns);
      s.counted.add(s.last, span_ns);
    }
  }
}

void state::count() {
  for (auto const& j : jobs.all()) {
    if (j->is_broken()) continue;
    amounts& sum = by_class[class_in_force(*j, overrides.find(j->folder))];
    for (auto& s : j->streams) {
      amounts const before = s.counted.done();
      s.counted.look(s.unit, segment::sum_channel(j->memory(), s.channel),
                     s.last.waiters != 0 || s.last.waiting != 0, j->processes);
      sum.delayed += s.counted.done().delayed - before.delayed;
      sum.waited_ns += s.counted.done().waited_ns - before.waited_ns;
    }
  }
}

void state::count_heads(moment at) {
  if (jobs.all().empty()) return;
  if (counting_ >= jobs.all().size()) {
    if (at.mono_ns - counted_ns_ < count_every_ns) return;
    counted_ns_ = at.mono_ns;
    counting_ = 0;
    heads_.restart();
  }
  unsigned budget = heads_per_tick;
  for (; counting_ < jobs.all().size(); ++counting_) {
    job& j = *jobs.all()[counting_];
    head_count found;
    if (!j.is_broken() && !heads_.step(j.memory(), budget, found)) return;
    j.processes = found.processes;
    j.foreign = found.foreign_processes;
    attached_[j.folder] = std::move(found);
    auto const any = [](auto const& marks) {
      return std::any_of(marks.begin(), marks.end(), is_alive);
    };
    bool const lives = j.processes != 0 || any(j.record.joiners) ||
                       (j.record.seat && (j.record.seat->is_held || any(j.record.seat->steps)));
    if (lives)
      j.empty_since_ns = 0;
    else if (j.empty_since_ns == 0)  // of a released job nobody is still starting
      j.empty_since_ns = j.record.seat ? at.mono_ns - bury_after_ns - 1 : at.mono_ns;
    heads_.restart();
  }
}

/// What jobs did until they ended, however long ago the last cycle was.
void state::count_last(moment at) {
  measure(at);
  end_cycle(at);
  count();
  remember(at, true);
}

void state::bury(moment at) {
  std::vector<job*> over;
  for (auto const& j : jobs.all())
    if (j->is_broken() ||
        (j->empty_since_ns != 0 && at.mono_ns - j->empty_since_ns > bury_after_ns))
      over.push_back(j.get());
  if (!over.empty()) count_last(at);
  for (job* j : over) {
    if (!gates.may_end(*j)) continue;
    before_.resize(site.supplies().size());
    for (auto const& of : j->streams) {
      before_[of.supply].served += static_cast<double>(of.counted.done().served);
      before_[of.supply].delayed += static_cast<double>(of.counted.done().delayed);
    }
    overrides.forget(j->folder);
    attached_.erase(j->folder);
    jobs.remove(*j, j->is_broken() ? "its segment was cut short" : "nobody is left in it");
    has_news = true;
    counting_ = jobs.all().size();
  }
  if (!over.empty()) keep_overrides();
}

void state::heed_scheduler(moment at) {
  heeded_ns_ = at.mono_ns;
  // A job made before the policy was heard of would not be metered by it.
  if (!site.is_set() && has_parent() && at.mono_ns - started_ns_ < first_policy_ns) return;
  auto const names = announced(jobs.run_dir());
  if (!names) return;
  auto const is_named = [&](std::string const& name) {
    return std::binary_search(names->begin(), names->end(), name);
  };
  for (auto const& j : jobs.all())
    if (j->record.seat && j->record.seat->is_held && !is_named(j->record.name)) end_seat(*j);
  for (auto const& name : *names) {
    if (unreadable_.contains(name) || jobs.has_seat(name)) continue;
    begin_seat(name, at);
  }
  std::erase_if(unreadable_, [&](std::string const& name) { return !is_named(name); });
}

job* state::begin_seat(std::string const& name, moment at) {
  try {
    segment::check_job_name(name);
    auto const text = read_state(scheduler_dir(jobs.run_dir()) + "/" + name);
    if (!text) return nullptr;
    job& made = jobs.seat(read_announcement(*text, name), site);
    enforce(at);
    has_news = true;
    return &made;
  } catch (error const& e) {
    unreadable_.insert(name);
    services.log.warning("announced job cannot be made", {{"job", name}, {"why", e.what()}});
    return nullptr;
  }
}

void state::end_seat(job& j) {
  if (!j.is_broken()) keep_result(*this, j);
  jobs.unseat(j);
  counted_ns_ = 0;  // look at once
  services.log.info("job released", {{"job", j.record.name}, {"uid", j.record.uid}});
}

void state::begin_escapes() {
  std::vector<watched_job> watched;
  for (auto const& j : jobs.all()) {
    auto const& seat = j->record.seat;
    if (seat && !seat->is_metered) continue;
    head_count const& heads = attached_[j->folder];
    watched.push_back({j->folder, jobs.run_dir() + "/jobs/" + j->folder, heads.pids,
                       j->record.joiners, heads.foreign,
                       seat ? seat->steps : std::vector<process_mark>{}});
  }
  std::vector<std::string> targets;
  for (auto const& t : site.site().targets) {
    std::error_code failed;
    auto const path = std::filesystem::weakly_canonical(t.path, failed);
    targets.push_back(failed ? t.path : path.string());
  }
  escapes_.begin(std::move(watched), std::move(targets));
}

std::uint64_t state::counted_bytes(std::string const& folder) const {
  for (auto const& j : jobs.all()) {
    if (j->folder != folder || j->is_broken()) continue;
    std::uint64_t sum = 0;
    for (auto const& call : segment::sum(j->memory()).call) sum += call.bytes;
    return sum;
  }
  return ~std::uint64_t{0};  // gone since: nothing can be said
}

void state::watch(moment at) {
  if (at.mono_ns - heeded_ns_ > heed_every_ns) heed_scheduler(at);
  count_heads(at);
  bury(at);
  if (at.mono_ns - swept_ns_ > sweep_every_ns) {
    // Jobs that began without a daemon, and whose programs did not clear up.
    swept_ns_ = at.mono_ns;
    segment::collect_garbage_if_free(jobs.run_dir());
    jobs.look_at_left_alone(site);
    jobs.keep_sizes();
  }
  if (escapes_.is_idle()) {
    if (at.mono_ns - begun_ns_ < escape_every_ns) return;
    begun_ns_ = at.mono_ns;
    return begin_escapes();
  }
  if (!escapes_.step()) return;
  heads_.set_dead_spaces(escapes_.dead_spaces());
  for (auto const& j : jobs.all()) {
    auto const found = escapes_.found().find(j->folder);
    j->escapes = found == escapes_.found().end() ? std::vector<escaped>{} : found->second;
    auto const outside = escapes_.foreign_found().find(j->folder);
    j->foreign_found = outside == escapes_.foreign_found().end() ? 0 : outside->second;
  }
}

// ---- deciding ----

void state::enforce(moment at) {
  rates.set_split(is_split_);
  rates.apply(site, jobs, overrides, lease, at);
}

void state::keep_overrides() {
  if (!write_state(config.state_dir + "/overrides.json", overrides.to_text()))
    services.log.warning("overrides cannot be kept", {{"dir", config.state_dir}});
}

void state::expire_overrides(moment at) {
  if (!overrides.expire(unix_s())) return;
  services.log.info("an override has run out");
  keep_overrides();
  enforce(at);
  has_news = true;
}

}  // namespace sluice::node
