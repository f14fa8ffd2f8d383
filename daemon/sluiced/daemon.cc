// SPDX-License-Identifier: Apache-2.0
// The order matters: signals are blocked. Processes (the keeper of the log, the tidier, the maker
// of those that touch users' memory) are forked, and capabilities are dropped, while there is one
// thread. The first ZeroMQ context comes after all of that. What can be wrong is found before
// anything is changed.
#include "sluiced/daemon.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/installed.h"
#include "base/owners.h"
#include "node/job_limits.h"
#include "node/job_table.h"
#include "node/journal_keeper.h"
#include "node/place_finder.h"
#include "policy/control.h"
#include "policy/policy.h"
#include "runtime/dashboard.h"
#include "runtime/fresh_look.h"
#include "runtime/launcher.h"
#include "runtime/metrics_server.h"
#include "runtime/policy_log.h"
#include "runtime/privileges.h"
#include "runtime/services.h"
#include "runtime/start.h"
#include "segment/far_memory.h"
#include "segment/journal_process.h"
#include "segment/run_dir.h"
#include "segment/tidier.h"
#include "sluiced/roles.h"
#include "wire/keys.h"
#include "wire/socket.h"

namespace sluice::sluiced {

namespace {

using runtime::config;

/// What the configuration names, read once to find what is wrong in it.
struct named_files {
  std::vector<std::string> warnings;
  std::vector<policy::target_spec> targets;  // of a node that divides their capacities itself
  std::size_t children = 0;
  std::unique_ptr<wire::security> keys;
};

named_files read_named(config const& c) {
  named_files out;
  if (!c.policy.empty()) {
    policy::site const site = policy::read_policy(c.policy);
    std::vector<std::string> found = policy::warnings(site);
    bool const is_node = c.role == runtime::role_kind::node;
    if (!is_node || !c.parents.empty())
      for (auto& w : policy::cluster_warnings(site)) found.push_back(std::move(w));
    for (auto const& w : found) out.warnings.push_back(c.policy + ": " + w);
    if (is_node && c.parents.empty()) out.targets = site.targets;
    if (!is_node) out.children = site.control.nodes.size();
  }
  if (!c.keys.empty()) {
    out.keys = std::make_unique<wire::security>(wire::read_keys(c.keys));
    if (!c.listen.empty()) out.children = std::max(out.children, out.keys->allowed.size());
  }
  return out;
}

/// Directories, made by root for the user it becomes.
void settle(config& c) {
  if (!c.user.empty()) {
    if (c.run_dir.empty()) c.run_dir = "/run/sluice";
    runtime::make_dir(c.run_dir, 0711, c.user);  // nobody else lists it, so nobody holds its lock
    if (!c.state_dir.empty()) runtime::make_dir(c.state_dir, 0700, c.user);
    runtime::become(c.user);
  }
  c.run_dir = segment::run_dir(c.run_dir);
  if (c.state_dir.empty()) c.state_dir = c.run_dir + "/state";
  runtime::make_dir(c.state_dir, 0700, "");
}

/// What a running daemon cannot change: the key that did, or null.
char const* unchangeable(config const& was, config const& is) {
  if (was.role != is.role) return "role";
  if (was.name != is.name) return "name";
  if (was.run_dir != is.run_dir) return "run-dir";
  if (was.state_dir != is.state_dir) return "state-dir";
  if (was.shared_dir != is.shared_dir) return "shared-dir";
  if (was.listen != is.listen) return "listen";
  if (was.parents != is.parents) return "parent";
  if (was.plain != is.plain || was.keys != is.keys) return "keys";
  if (was.journal != is.journal || was.journal_mib != is.journal_mib ||
      was.journal_total_mib != is.journal_total_mib || was.journal_idle_ns != is.journal_idle_ns)
    return "journal";
  if (was.metrics != is.metrics || was.metrics_jobs != is.metrics_jobs) return "metrics";
  if (was.user != is.user) return "user";
  if (was.view != is.view) return "view";
  if (was.cycle_ns != is.cycle_ns) return "cycle";
  if (was.local_cycle_ns != is.local_cycle_ns) return "local-cycle";
  return nullptr;
}

/// All is read and checked before anything is taken.
config read_again(runtime::command_line const& line, config const& written, config const& settled,
                  runtime::logger& log) {
  config fresh = runtime::read_config(line);
  if (char const* key = unchangeable(written, fresh))
    throw usage_error(fmt::format("{} cannot change while the daemon runs: restart it", key));
  for (auto const& w : read_named(fresh).warnings) log.warning("policy", {{"why", w}});
  log.set_level(runtime::parse_level(fresh.log_level));
  fresh.run_dir = settled.run_dir;
  fresh.state_dir = settled.state_dir;
  return fresh;
}

std::string journal_program(char const* name) {
  std::string const program = find_beside(name);
  if (program.empty())
    throw sluice_error(
        fmt::format("--journal: {} is not beside sluiced, nor in ../lib/sluice", name));
  return program;
}

/// Older versions kept one journal of all users in a file. What it has comes home first.
[[noreturn]] void refuse_shared(std::string const& file) {
  std::string state = "What it held is at home, and it can be removed";
  try {
    segment::recover_journal(journal_program("sluice-recover"), file);
  } catch (error const& e) {
    state = fmt::format("It is not at home: {}", e.what());
  }
  throw usage_error(fmt::format(
      "--journal: {} is one journal of all users, and each has one of his own now: name a "
      "directory for them, such as /var/lib/sluice-order. {}",
      file, state));
}

/// Before privileges are dropped: those of the journals' keeper are more than ours.
node::journal_child begin_journals(config const& c, owner_lookup const& owner_of) {
  if (c.journal.empty()) return {};
  std::error_code failed;
  if (std::filesystem::is_regular_file(c.journal, failed)) refuse_shared(c.journal);
  return node::keep_journals({journal_program("sluice-order"), journal_program("sluice-recover"),
                              c.journal, c.journal_mib, c.journal_total_mib, c.journal_idle_ns,
                              c.run_dir, owner_of});
}

/// Who is not root has no jobs but his own.
std::unique_ptr<segment::tidier> begin_tidier(config const& c) {
  if (c.role != runtime::role_kind::node || geteuid() != 0) return nullptr;
  return std::make_unique<segment::tidier>([] { runtime::drop_to_tidier(); });
}

/// The same.
std::unique_ptr<segment::far_memory> begin_far_memory(config const& c) {
  if (c.role != runtime::role_kind::node || geteuid() != 0) return nullptr;
  return std::make_unique<segment::far_memory>([] { runtime::drop_all(); });
}

/// Threads that look at processes may outlive us, and ask.
owner_lookup look_for_owners() {
  return [known = std::make_shared<owners>()](uid_t uid) { return known->of(uid, steady_ns()); };
}

void say_start(config const& c, runtime::services& s, runtime::kept_capabilities const& caps,
               runtime::kept_capabilities const& watching) {
  s.log.info("start", {{"version", runtime::version},
                       {"role", name_of(c.role)},
                       {"name", c.name},
                       {"pid", getpid()},
                       {"uid", geteuid()},
                       {"run_dir", c.run_dir},
                       {"capabilities", caps.kept},
                       {"watching", watching.kept.empty() ? "none" : watching.kept},
                       {"metrics", s.metrics_at == nullptr ? "" : s.metrics_at->address()}});
  if (!caps.missing.empty())
    s.log.warning("capabilities are missing: jobs of other users are not served in full",
                  {{"missing", caps.missing}});
  if (!watching.missing.empty())
    s.log.warning("capabilities are missing: processes of other users that escape are not seen",
                  {{"missing", watching.missing}});
  if (c.plain) s.log.warning("no keys: everybody on this machine is listened to");
  s.metrics.set(runtime::metric::build_info, {runtime::version, name_of(c.role)}, 1);
  s.metrics.add(runtime::metric::policy_rejected_total, 0);  // increase() sees the first one
}

int say_checked(config const& written, named_files const& named) {
  for (auto const& w : written.warnings) fmt::print("warning: {}\n", w);
  for (auto const& w : named.warnings) fmt::print("warning: {}\n", w);
  node::place_finder places;
  for (auto const& w : node::absent(named.targets, places.files()))
    fmt::print("warning: {}: {}\n", written.policy, w);
  fmt::print("the configuration is fine\n");
  return 0;
}

std::size_t most_jobs_of(config const& c) {
  return c.role == runtime::role_kind::node ? node::job_table::most_jobs : 0;
}

}  // namespace

int run_daemon(runtime::command_line const& line) {
  config const written = runtime::read_config(line);
  named_files const named = read_named(written);
  if (line.check) return say_checked(written, named);
  runtime::check_clock();
  int const signal_fd = runtime::open_signals();
  config c = written;
  settle(c);
  std::string trouble, unlocked;
  runtime::lock_run_dir(c.run_dir);
  runtime::lock_state_dir(c.state_dir, unlocked);
  owner_lookup const owner_of = look_for_owners();
  node::journal_child const keeper = begin_journals(c, owner_of);
  std::unique_ptr<segment::tidier> const tidier = begin_tidier(c);
  std::unique_ptr<segment::far_memory> const far_memory = begin_far_memory(c);
  std::unique_ptr<runtime::launcher> walks;
  runtime::kept_capabilities watching;
  if (c.role == runtime::role_kind::node)
    watching = runtime::as_watcher([&] { walks = std::make_unique<runtime::launcher>(); });
  auto const caps = runtime::drop_capabilities(c.role);

  runtime::logger log(runtime::parse_level(c.log_level));
  runtime::notifier notify;
  runtime::metric_table metrics(c.metrics_jobs);
  metrics.before_publish = [&] {
    for (auto l : {runtime::level::error, runtime::level::warning, runtime::level::info})
      metrics.set(runtime::metric::log_messages_total, {name_of(l)},
                  static_cast<double>(log.count(l)));
  };
  runtime::dashboard board({name_of(c.role), c.name, runtime::version}, owner_of);
  runtime::fresh_look looks;
  std::unique_ptr<runtime::metrics_server> server;
  std::unique_ptr<wire::context> zmq;
  runtime::without_capabilities([&] {
    if (!c.metrics.empty())
      server = runtime::metrics_server::open(c.metrics, metrics, &board, &looks, owner_of);
    zmq = wire::make_context();
  });
  runtime::services s{log, notify, metrics};
  s.signal_fd = signal_fd;
  s.zmq = zmq.get();
  s.keys = named.keys.get();
  s.incarnation = runtime::next_incarnation(
      c.state_dir, static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME)), trouble);
  s.capabilities = caps.kept;
  s.metrics_at = server.get();
  s.board = &board;
  s.looks = &looks;
  s.walks = walks.get();
  runtime::policy_log policies(c.state_dir + "/policies");
  s.policies = &policies;
  s.owner_of = owner_of;
  s.tidier = tidier.get();
  s.far_memory = far_memory.get();
  s.journal_keeper = keeper.socket.get();
  s.reload = [&] { return read_again(line, written, c, log); };

  say_start(c, s, caps, watching);
  if (server && server->is_waiting())
    log.warning("metrics are not served yet: somebody else has their port",
                {{"address", server->address()}, {"meaning", "it is tried again every 10 s"}});
  for (auto const& w : written.warnings) log.warning("configuration", {{"why", w}});
  for (auto const& w : named.warnings) log.warning("policy", {{"why", w}});
  for (auto const& w : runtime::check_machine(c, {named.children, most_jobs_of(c)})) log.warning(w);
  if (!trouble.empty()) log.warning("cannot store the incarnation", {{"why", trouble}});
  if (!unlocked.empty()) log.warning("cannot lock the state directory", {{"why", unlocked}});
  int const status = function_of(c.role)(c, s);
  log.info("end", {{"status", status}});
  return status;
}

}  // namespace sluice::sluiced
