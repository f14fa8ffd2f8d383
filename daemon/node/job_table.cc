// SPDX-License-Identifier: Apache-2.0
#include "node/job_table.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/number.h"
#include "base/shared_places.h"
#include "base/suggest.h"
#include "base/whole_file.h"
#include "node/curves.h"
#include "node/job_limits.h"
#include "policy/class_list.h"
#include "policy/supply.h"
#include "runtime/user_names.h"
#include "segment/cut_back.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"
#include "segment/sums.h"
#include "wire/message.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_joiners = 64;
constexpr unsigned walks_to_go = 2;  // one of them may pass between a fork and the parent's end
constexpr int most_rescues = 8;      // of a user, between two looks at all files
constexpr std::int64_t begun_patience_ns = 15'000'000'000;  // longer than between tries

std::string record_text(std::string const& dir) {
  auto text = read_file(dir + "/job.json");
  if (!text) throw sluice_error(fmt::format("{}/job.json: {}", dir, std::strerror(errno)));
  return *std::move(text);
}

std::optional<unsigned> place_of(std::vector<std::string> const& names, std::string const& name) {
  auto const at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<unsigned>(at - names.begin());
}

std::optional<job_record> record_in(std::string const& dir) try {
  return read_record(record_text(dir));
} catch (error const&) {
  return std::nullopt;
}

constexpr char const* unrecovered_text =
    "your journal on this node is not recovered, so files of durable targets may lack what was "
    "synced to them: jobs with such targets are refused until it is (`sluice order` shows its "
    "state)";
constexpr char const* coming_home_text =
    "what a crash left in your journal on this node is being brought home, and files of durable "
    "targets lack it until then (`sluice order` shows its state)";

/// For files that have to be cut back first: where RUN is full, while others wait, and at the
/// start.
constexpr std::int64_t room_patience_ns = 100'000'000, start_patience_ns = 500'000'000;

constexpr char const* remains_grew_text =
    "files of a job that is over were cut back: somebody had let them grow";

/// Limits in an order of their own, so that two writings compare.
std::vector<std::string> sorted(std::vector<std::string> limits) {
  std::sort(limits.begin(), limits.end());
  return limits;
}

}  // namespace

/// Of a job whose segment cannot be read: by what was written down.
segment::life_facts job_table::facts_of(job_record const& r) {
  segment::life_facts f;
  f.has_joiner = processes_.may_any_live(r.joiners);
  f.is_scheduled = r.scheduler.has_value();
  if (!f.is_scheduled) return f;
  auto const there = announced(run_dir_);
  f.is_held = !there || !is_withdrawn(*there, run_dir_, r.name);
  f.has_step = processes_.may_any_live(r.scheduler->steps);
  return f;
}

void keep_mark(std::vector<process_mark>& list, process_mark const& mark, std::size_t most) {
  std::erase_if(list, [&](process_mark const& p) { return p.pid == mark.pid; });
  if (list.size() >= most)
    std::erase_if(list, [](process_mark const& p) { return has_process_ended(p.pid); });
  if (list.size() >= most) list.erase(list.begin());  // perhaps its number is another's by now
  list.push_back(mark);
}

/// Read first, asked then: the number of one that has ended may be anybody's.
std::optional<process_mark> job_table::mark_of(local::peer const& who) {
  auto const mark = processes_.mark_of(static_cast<std::uint32_t>(who.pid));
  if (has_ended(who)) throw sluice_error("the process that asks to join has ended");
  return mark;
}

void job_table::add_joiner(job& j, local::peer const& who) {
  auto const mark = mark_of(who);
  if (!mark) return;
  keep_mark(j.record.joiners, *mark, most_joiners);
  j.map.set_holder(abi::holder_word(mark->pid, mark->start_ticks));
}

void check_keeps_targets(job const& j, join_request const& request) {
  if (!request.orders.empty())
    throw sluice_error(fmt::format(
        "job {} is running, and keeps the durable directories it began with", j.record.name));
  if (!request.small.empty())
    throw sluice_error(fmt::format("job {} is running, and keeps what it began with for small I/O",
                                   j.record.name));
}

std::string class_for(local::peer const& who, std::optional<std::string> const& wish,
                      site_state const& site) {
  std::string const chosen = wish.value_or(site.site().control.default_class);
  // A policy not heard of yet: nobody is kept from work.
  if (!site.is_set() || chosen.empty()) return chosen;
  std::vector<gid_t> groups = who.groups;
  groups.push_back(who.gid);
  policy::check_class(site.site(), chosen, who.uid, groups, runtime::user_name(who.uid));
  return chosen;
}

/// The policy of this start does not share what the channel is for.
void open_up(job& j, unsigned channel, std::int64_t now_ns) {
  auto const unit = static_cast<unit_kind>(j.memory().rules.channel[channel].unit);
  rate const all = unlimited(unit);
  j.map.write_curve(channel, settings_of(unit, {all, all, all}, {}), now_ns);
}

std::vector<std::string> not_governed(site_state const& site, job const& j) {
  std::vector<std::string> names;
  auto const& lacks = j.record.left_out;
  for (unsigned i = 0; i < site.supplies().size() && !j.record.monitor; ++i) {
    policy::supply const& of = site.supplies()[i].of;
    bool const has = std::any_of(j.streams.begin(), j.streams.end(),
                                 [&](stream const& x) { return x.supply == i; });
    bool const lacked = std::find(lacks.begin(), lacks.end(), of.target) != lacks.end();
    if (of.capacity != 0 && !has && !lacked) names.push_back(of.name());
  }
  return names;
}

/// Whose process it is, for bounds that hold for one user.
process_teller::owner who_started(owner_lookup people) {
  return
      [people = std::move(people)](std::uint32_t pid) { return owner_by(people, owner_of(pid)); };
}

job_table::job_table(std::string run_dir, std::string library, std::string node_name,
                     runtime::logger& log, process_teller::starter start, owner_lookup owner_of,
                     segment::tidier* tidier, process_teller::look read, segment::far_memory* far)
    : run_dir_(std::move(run_dir)),
      library_(std::move(library)),
      node_name_(std::move(node_name)),
      log_(log),
      processes_(std::move(start), std::move(read), who_started(owner_of)),
      owner_of_(std::move(owner_of)),
      far_(far),
      tidier_(tidier != nullptr ? *tidier : own_tidier_),
      remains_(run_dir_, tidier_, owner_of_) {
  if (geteuid() != 0) return;
  // Stages of all users pass through; only we list or write.
  chmod(run_dir_.c_str(), 0711);
  chmod(segment::jobs_dir(run_dir_).c_str(), 0711);
}

std::string job_table::folder_of(uid_t uid, std::string const& name) const {
  return uid == geteuid() ? name : fmt::format("{}@{}", uid, name);
}

/// Of whom folder_of() made it.
std::optional<job_table::whose> job_table::named_by(std::string const& folder) {
  std::size_t const at = folder.find('@');
  if (at == std::string::npos) return whose{geteuid(), folder};
  uid_t uid = 0;
  if (!to_number(std::string_view(folder).substr(0, at), uid)) return std::nullopt;
  return whose{uid, folder.substr(at + 1)};
}

void job_table::look(std::span<job const* const> some, std::uint32_t parts,
                     std::int64_t debt_ns) const {
  if (far_ == nullptr) return;
  std::vector<segment::far_region*> regions;
  for (job const* const j : some)
    if (j->map.far() != nullptr && !j->is_broken()) regions.push_back(j->map.far());
  far_->look(regions, parts, debt_ns);  // of none, too: who has no job any more is forgotten
}

void job_table::look(std::uint32_t parts) const {
  std::vector<job const*> all;
  for (auto const& j : jobs_) all.push_back(j.get());
  look(all, parts);
}

void job_table::look(job const& j, std::uint32_t parts, std::int64_t debt_ns) const {
  job const* const only[] = {&j};
  look(only, parts, debt_ns);
}

void job_table::look_last(std::span<job const* const> some) const {
  look(some, segment::whole, segment::far_memory::most_debt_ns);
}

void job_table::look_last(job const& j) const {
  j.map.ask_anew();
  look(j, segment::whole, segment::far_memory::most_debt_ns);
}

bool job_table::settle(job const& j) const {
  look(j, segment::glance, segment::far_memory::most_debt_ns);
  return j.is_broken() || j.map.is_current();
}

job* job_table::find(uid_t uid, std::string const& name) const {
  for (auto const& j : jobs_)
    if (j->record.uid == uid && j->record.name == name) return j.get();
  return nullptr;
}

std::string job_table::free_name(local::peer const& who) const {
  std::string const name = fmt::format("run-{}", who.pid);
  std::string free = name;
  for (int i = 2; find(who.uid, free) != nullptr; ++i) free = fmt::format("{}-{}", name, i);
  return free;
}

bool has_room(std::size_t all, std::size_t of_owner, bool is_root) {
  constexpr shared_places jobs = {job_table::most_jobs, job_table::most_of_an_owner,
                                  job_table::kept_jobs};
  return is_root ? all < jobs.all : jobs.has_one(all, of_owner);
}

std::map<uid_t, gid_t> journals_given(std::vector<std::pair<uid_t, gid_t>> const& wanted,
                                      std::map<uid_t, bool> const& known,
                                      owner_lookup const& owner_of) {
  struct count {
    std::size_t journals = 0, folders = 0;
  };
  std::map<uid_t, count> of_owner;
  for (auto const& [uid, has_journal] : known) {
    count& has = of_owner[owner_by(owner_of, uid)];
    has.journals += has_journal ? 1 : 0;
    ++has.folders;
  }
  std::map<uid_t, gid_t> out;
  for (auto const& [uid, gid] : wanted) {
    count& has = of_owner[owner_by(owner_of, uid)];
    auto const own = known.find(uid);
    bool const has_journal = own != known.end() && own->second, has_folder = own != known.end();
    bool const may_have = has_journal || has.journals < most_journals_of_an_owner;
    bool const has_place = has_folder || has.folders < job_table::most_journal_folders_of_an_owner;
    if (out.contains(uid) || !may_have || !has_place) continue;
    out.emplace(uid, gid);
    has.journals += has_journal ? 0 : 1;
    has.folders += has_folder ? 0 : 1;
  }
  return out;
}

/// Who has ended his jobs one after the other is told to ask again: what is over goes soon.
void job_table::check_room(uid_t uid, std::int64_t asked_ns) {
  std::int64_t const now_ns = steady_ns();
  auto const is_his = [this, his = owner(uid)](uid_t other) { return owner(other) == his; };
  std::size_t of_owner = 0, used = 0;
  for (auto const& j : jobs_) {
    if (!is_his(j->record.uid)) continue;
    ++of_owner;
    bool const is_known = j->counted_ns > now_ns - asked_ns;  // since it was asked for
    used += is_known && j->life.state == segment::life_state::used ? 1 : 0;
  }
  auto const left = static_cast<std::size_t>(
      std::ranges::count_if(left_alone_, [&](left_alone const& l) { return is_his(l.uid); }));
  std::size_t const all = jobs_.size() + left_alone_.size(), held = remains_.of(is_his) + left;
  if (uid != 0 && remains_.are_held_up(is_his, now_ns))
    throw segment::no_room(fmt::format(
        "a lease or a lock on a file of a job of uid {} that is over keeps sluiced from clearing "
        "it away: end the process that holds it, and try again",
        uid));
  if (has_room(all, of_owner + held, uid == 0)) return;
  bool const is_soon =
      has_room(all - (of_owner - used), used + remains_.open_of(is_his) + left, uid == 0);
  wants_count_ = wants_count_ || is_soon;
  throw segment::no_room(
      fmt::format("too many jobs on this node ({}, {} of the user of uid {}{}): a user may have "
                  "{}, and the last {} of {} are for users who have none",
                  all, of_owner, uid,
                  held == 0 ? "" : fmt::format(", and {} of his that are over but not gone", held),
                  most_of_an_owner, kept_jobs, most_jobs),
      is_soon ? exit_full : exit_sluice);
}

/// Who made it first would choose the class of another's job, or of his own.
void job_table::check_name(local::peer const& who, std::string const& name) const {
  if (local::is_operator(who) || !is_schedulers_name(name)) return;
  throw usage_error(
      fmt::format("job name \"{}\": names of digits are the scheduler's, choose another", name));
}

joined job_table::join(local::peer const& who, join_request const& request,
                       site_state const& site) {
  std::string const name = request.name ? *request.name : free_name(who);
  segment::check_job_name(name);
  if (!local::is_operator(who) && geteuid() != 0)
    throw usage_error("this sluiced serves another user's jobs");
  job* const there = find(who.uid, name);
  if (there == nullptr) {
    check_name(who, name);
    return {&make(who, name, request, site), true};
  }
  job_record const& r = there->record;
  if (request.qos_class && *request.qos_class != r.qos_class)
    throw usage_error(r.qos_class.empty()
                          ? fmt::format("job {} is running in no class", name)
                          : fmt::format("job {} is running in class \"{}\"", name, r.qos_class));
  if (!request.limits.empty() && sorted(request.limits) != r.limits)
    throw usage_error(
        fmt::format("job {} is running with other limits: leave them out to join "
                    "it, or change them with `sluice set {} CHANNEL=RATE`",
                    name, name));
  check_keeps_targets(*there, request);
  add_joiner(*there, who);
  there->life = {};
  keep(*there);
  return {there, false};
}

/// No target is durable: fsync is what it is without a journal.
void take_order_away(policy::compiled& limits) {
  limits.durable_targets = limits.ordered_targets = 0;
  limits.job_streams = limits.thread_streams = limits.path_streams = 0;
}

/// `note`: where to say what the job is made without, instead of refusing it.
void job_table::check_home(uid_t uid, policy::compiled& limits, std::string* note) const {
  if (!home_of_ || limits.durable_targets == 0) return;
  home_state const state = home_of_(uid);
  if (state == home_state::fine) return;
  bool const is_soon = state == home_state::coming_home;
  char const* const text = is_soon ? coming_home_text : unrecovered_text;
  if (note == nullptr) throw error(is_soon ? exit_later : exit_usage, text);
  if (is_soon) throw segment::no_room(text, exit_later);
  *note = text;
  take_order_away(limits);
}

std::map<uid_t, gid_t> job_table::users_of_journals(std::map<uid_t, bool> const& known) const {
  std::vector<std::pair<uid_t, gid_t>> wanted;
  for (auto const& j : jobs_)
    if (j->wants_journal) wanted.emplace_back(j->record.uid, j->record.gid);
  return journals_given(wanted, known, owner_of_);
}

/// `note`: as above.
job& job_table::make(local::peer const& who, std::string const& name, join_request const& request,
                     site_state const& site, std::string* note) {
  check_room(who.uid, request.asked_ns);
  std::string const folder = folder_of(who.uid, name);
  // Made by a `sluice run` that found no daemon; not ours to touch. No usage error: whoever asks
  // joins it as it is.
  std::error_code failed;
  if (std::filesystem::exists(segment::job_dir(run_dir_, folder), failed))
    throw sluice_error(
        fmt::format("job {} is running without this sluiced: it began before", name));
  std::string const qos_class = class_for(who, request.qos_class, site);
  if (!request.policy_channels && !local::is_operator(who))
    throw usage_error("only an operator may leave the policy's channels out");
  job_limits limits =
      limits_of(site,
                {request.limits, request.orders, request.small, request.costs, request.monitor,
                 request.policy_channels, request.places, local::is_operator(who), qos_class},
                places_.files());
  check_home(who.uid, limits.compiled, note);
  job_record r{who.uid,
               who.gid,
               name,
               qos_class,
               request.monitor,
               sorted(request.limits),
               std::move(limits.fixed),
               std::move(limits.granted),
               std::move(limits.left_out),
               {},
               {}};
  r.sizes = segment::made_sizes::of_this_version();
  for (auto const& a : limits.compiled.after) r.after.push_back({a.root, a.says.patience_ns});
  process_mark maker = {};
  if (auto const mark = mark_of(who)) r.joiners.push_back(maker = *mark);
  make_files({folder, name, library_, who.uid, who.gid, maker, to_text(r)}, limits.compiled);
  try {
    adopt_one(folder, site, segment::job_age::made_now);
  } catch (...) {
    retire(folder, who.uid);
    throw;
  }
  job* const j = find(who.uid, name);
  if (j == nullptr) throw sluice_error(fmt::format("job {} could not be opened", name));
  j->told_ops.resize(core::op_count);
  log_.info("job made", {{"job", name}, {"uid", who.uid}, {"class", qos_class}});
  return *j;
}

/// Where RUN is full, what users let grow is cut back first. They may be quick, so again; what was
/// found is kept until the user's next try. Others wait meanwhile, so a user has a bounded number
/// of tries in a while.
void job_table::make_files(segment::new_job const& made, policy::compiled const& limits) {
  uid_t const whose = owner(made.uid);
  begun& b = begun_.try_emplace(whose, run_dir_, fmt::to_string(whose)).first->second;
  while (true) try {
      b.tried_ns = steady_ns();
      bool const is_made = b.files.finish(made, limits);
      begun_.erase(whose);
      if (is_made) return;
      throw sluice_error(fmt::format("{} is in the way", segment::job_dir(run_dir_, made.folder)));
    } catch (segment::no_room const& e) {
      int& rescues = rescues_[whose];
      if (rescues >= most_rescues) throw segment::no_room(e.what(), exit_full);
      ++rescues;
      make_room();
    }
}

/// Only cuts back: the rest of keep_sizes() has time.
void job_table::make_room() {
  std::int64_t const now_ns = steady_ns();
  for (auto const& j : jobs_)
    cut_back(j->folder, segment::made_sizes::of_this_version(), j->record.uid);
  remains_.look(now_ns);
  tidier_.wait(now_ns, room_patience_ns);
  heed_tidier();
}

void job_table::heed_tidier() {
  for (auto const& [dir, done] : tidier_.take()) {
    bool const is_over = remains_.hear(dir, done, steady_ns());
    std::string const folder = dir.substr(dir.rfind('/') + 1);
    if (done.had_grown && is_over) log_.warning(remains_grew_text);
    if (done.had_grown && !is_over)
      log_.warning("job's files were cut back: its owner had let them grow", {{"job", folder}});
    if (done.is_leased && !is_over)
      log_.warning("job's files have grown, and its owner holds a lease on one", {{"job", folder}});
    if (is_over) ++changes_of_room_;
  }
  for (auto const& dir : tidier_.take_late(steady_ns()))
    log_.warning("a job's files cannot be tidied: its owner holds the lock of one",
                 {{"folder", dir}, {"meaning", "end his processes"}});
}

void job_table::bind_all(site_state const& site, std::int64_t now_ns) {
  for (auto const& j : jobs_) {
    if (j->is_broken()) continue;
    try {
      bind_streams(*j, site, now_ns);
    } catch (error const& e) {
      log_.warning("job cannot be bound to the policy: its segment was scribbled over",
                   {{"job", j->record.name}, {"uid", j->record.uid}, {"why", e.what()}});
    }
  }
}

void job_table::bind_streams(job& j, site_state const& site, std::int64_t now_ns) {
  auto const names = segment::channel_names(j.memory());
  for (auto const& name : j.record.granted) {
    auto const supply = site.find_supply(name);
    auto const channel = place_of(names, name);
    if (!channel) continue;
    if (!supply) {
      if (site.is_set()) open_up(j, *channel, now_ns);
      continue;
    }
    bool const known = std::any_of(j.streams.begin(), j.streams.end(),
                                   [&](stream const& s) { return s.channel == *channel; });
    if (known) continue;
    stream s;
    s.channel = *channel;
    s.supply = *supply;
    s.unit = site.supplies()[*supply].of.unit;
    s.waits = waits_so_far(j.memory(), s.channel);
    s.measured.start(j.look_at(s.channel, look_depth::curve, now_ns), s.waits, now_ns);
    s.counted.start(segment::sum_channel(j.memory(), s.channel));
    j.streams.push_back(s);
  }
  j.fixed.clear();
  for (auto const& f : j.record.fixed)
    if (auto const channel = place_of(names, f.name)) j.fixed.push_back({*channel, f});
}

void job_table::adopt_one(std::string const& folder, site_state const& site, segment::job_age age) {
  std::string const dir = segment::job_dir(run_dir_, folder);
  job_record record = read_record(record_text(dir));
  if (folder_of(record.uid, record.name) != folder) throw sluice_error("another job's job.json");
  uid_t const uid = record.uid;
  auto map = segment::job_memory::open(dir + "/segment", uid, owner(uid), far_, age);
  auto j = std::make_unique<job>(folder, std::move(record), std::move(map));
  j->wants_journal = is_here(segment::order_path(dir + "/segment"));
  j->owner = owner(uid);
  heed_lease(*j, !j->areas.hold(dir, uid));
  bind_streams(*j, site, steady_ns());
  auto const after = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](auto const& other) { return other->folder > folder; });
  jobs_.insert(after, std::move(j));
}

void job_table::adopt(site_state const& site) {
  std::int64_t const now_ns = steady_ns();
  segment::collect_garbage(run_dir_, segment::collector::daemon_at_start);
  remains_.find();
  remains_.look(now_ns);
  auto const folders = segment::list_jobs(run_dir_);
  for (auto const& folder : folders)  // one that has grown seems to be of another version
    if (auto const whose = named_by(folder)) keep_made_size(folder, whose->uid);
  tidier_.wait(now_ns, start_patience_ns);
  heed_tidier();
  for (auto const& folder : folders) {
    std::error_code failed;
    if (!std::filesystem::exists(segment::job_dir(run_dir_, folder) + "/job.json", failed))
      continue;  // of a `sluice run` without a daemon
    try {
      adopt_one(folder, site);
      log_.info("job taken over", {{"job", folder}});
    } catch (std::exception const& e) {
      // Its programs may still run, by the library in its folder.
      auto const whose = named_by(folder);
      bool const stays = whose.has_value();
      log_.warning("job cannot be taken over",
                   {{"job", folder}, {"why", e.what()}, {"folder", stays ? "stays" : "removed"}});
      if (stays)
        left_alone_.push_back({folder, whose->uid});
      else
        segment::remove_job(run_dir_, folder);
    }
  }
}

std::map<std::string, uid_t> job_table::left() const {
  std::map<std::string, uid_t> out;
  for (auto const& left : left_alone_) out.emplace(left.folder, left.uid);
  return out;
}

std::optional<job_record> job_table::record_of(std::string const& folder) const {
  return record_in(segment::job_dir(run_dir_, folder));
}

void job_table::heed_walk(std::set<std::string> const& inhabited) {
  for (auto& left : left_alone_)
    left.empty_walks = inhabited.contains(left.folder) ? 0 : left.empty_walks + 1;
}

std::set<core::job_id> job_table::keys() const {
  std::set<core::job_id> out;
  for (auto const& j : jobs_) out.insert(j->key);
  for (auto const& left : left_alone_)
    if (auto const whose = named_by(left.folder))
      out.insert(wire::job_key(whose->uid, whose->name));
  return out;
}

bool job_table::can_take_over(std::string const& folder, site_state const& site) try {
  adopt_one(folder, site);
  log_.info("job taken over", {{"job", folder}});
  return true;
} catch (std::exception const&) {
  return false;  // as before; the log has it
}

void job_table::look_at_left_alone(site_state const& site) {
  std::erase_if(left_alone_, [&](left_alone const& left) {
    std::string const& folder = left.folder;
    if (!is_here(segment::job_dir(run_dir_, folder))) return true;
    auto const record = record_of(folder);
    bool const is_known_used = record && is_used(facts_of(*record));
    if (left.empty_walks < walks_to_go || is_known_used) return can_take_over(folder, site);
    retire(folder, left.uid);
    log_.info("job removed", {{"job", folder}, {"why", "nobody is left in it"}});
    return true;
  });
}

/// Of a job that is not ours to read, by what was written down.
bool job_table::keep_made_size(std::string const& folder, uid_t uid) {
  return cut_back(folder, segment::sizes_in(segment::job_dir(run_dir_, folder)), uid);
}

/// He needs none: it keeps us from cutting the file back.
void job_table::heed_lease(job& j, bool has_lease) {
  if (j.is_leased()) return;
  j.leased_looks = has_lease ? j.leased_looks + 1 : 0;
  if (has_lease)
    log_.warning("job's owner holds a lease on one of its files: the job goes if he keeps it",
                 {{"job", j.record.name},
                  {"uid", j.record.uid},
                  {"look", j.leased_looks},
                  {"most", most_leased_looks}});
}

void job_table::keep_left_alone_sizes() {
  std::erase_if(left_alone_, [&](left_alone& left) {
    left.leased_looks = keep_made_size(left.folder, left.uid) ? left.leased_looks + 1 : 0;
    if (left.leased_looks < most_leased_looks) return false;
    retire(left.folder, left.uid);
    log_.warning("job removed",
                 {{"job", left.folder}, {"why", "its owner holds leases on its files"}});
    return true;
  });
}

/// Asks for it where a file has grown or changed: he may have given it attributes, which are memory
/// as well, and to list many takes long. True: a lease or a lock keeps us from a file that has
/// grown.
bool job_table::cut_back(std::string const& folder, segment::made_sizes const& sizes, uid_t uid) {
  std::string const dir = segment::job_dir(run_dir_, folder);
  segment::file_look const seen = segment::look_at_files(dir, sizes);
  std::int64_t& known_ns = files_changed_ns_[folder];
  if (!seen.has_grown && known_ns == seen.changed_ns) return false;
  std::int64_t const now_ns = steady_ns();
  bool const is_held_up = tidier_.is_held_up(dir, now_ns);
  bool const is_asked =
      tidier_.ask(dir, owner(uid), {.is_over = false, .has_let_go = false, .sizes = sizes}, now_ns);
  if (is_asked) known_ns = seen.changed_ns;
  return is_held_up;
}

void job_table::keep_sizes() {
  rescues_.clear();
  std::erase_if(begun_, [now_ns = steady_ns()](auto const& each) {
    return now_ns - each.second.tried_ns > begun_patience_ns;
  });
  for (auto const& j : jobs_) {
    bool const is_held = j->areas.hold(segment::job_dir(run_dir_, j->folder), j->record.uid);
    bool const is_leased =
        cut_back(j->folder, segment::made_sizes::of_this_version(), j->record.uid);
    heed_lease(*j, !is_held || is_leased);
  }
  keep_left_alone_sizes();
  remains_.look(steady_ns());
  heed_tidier();
  ++changes_of_room_;
}

void job_table::retire(std::string const& folder, uid_t uid, segment::held_areas held) {
  files_changed_ns_.erase(folder);
  remains_.retire(folder, uid, std::move(held), steady_ns());
  heed_tidier();
  ++changes_of_room_;
}

void job_table::remove(job& j, std::string_view why) {
  log_.info("job removed", {{"job", j.record.name}, {"uid", j.record.uid}, {"why", why}});
  std::string const folder = j.folder;
  uid_t const uid = j.record.uid;
  // Its files stay held after its memory goes, or a lease could come in between.
  segment::held_areas held = std::move(j.areas);
  std::erase_if(jobs_, [&](auto const& other) { return other.get() == &j; });
  retire(folder, uid, std::move(held));
}

void job_table::keep(job const& j) {
  std::string const path = segment::job_dir(run_dir_, j.folder) + "/job.json";
  if (!replace_file(path, to_text(j.record)))
    log_.warning("job.json cannot be written", {{"job", j.record.name}, {"path", path}});
}

}  // namespace sluice::node
