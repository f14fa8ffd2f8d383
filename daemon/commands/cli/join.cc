// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/join.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/installed.h"
#include "base/on_stderr.h"
#include "base/process_mark.h"
#include "commands/cli/costs.h"
#include "commands/cli/daemon.h"
#include "commands/cli/limits.h"
#include "commands/cli/paths.h"
#include "policy/carried.h"
#include "policy/cost_file.h"
#include "policy/limit.h"
#include "policy/mount_table.h"
#include "policy/order.h"
#include "policy/small.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"
#include "segment/segment_file.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_wait_ns = 60'000'000'000, most_place_wait_ns = 5'000'000'000;
constexpr std::int64_t ask_again_ns = 200'000'000;
constexpr std::int64_t most_silence_ns = 1'000'000'000;  // of a wait
constexpr int join_ms = 2000;  // it has greeted us; making a segment takes a while on a busy node

// ---- with a daemon ----

nlohmann::json or_null(std::string const& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

/// Words with a DIR after the `@`, or without one, as the daemon can read them, which is in another
/// directory.
std::vector<std::string> from_the_root(std::vector<std::string> const& texts) {
  std::vector<std::string> out;
  for (auto const& text : texts) {
    auto const at = text.find('@');
    bool const has_path = at != text.npos && at + 1 != text.size();
    out.push_back(has_path ? text.substr(0, at + 1) + fs::absolute(text.substr(at + 1)).string()
                           : text);
  }
  return out;
}

/// What the files of --cost say, by limit: the daemon reads no file of a user.
nlohmann::json costs_of(run_options const& options) {
  std::vector<policy::channel_spec> channels;
  for (auto const& text : options.limits.limits) channels.push_back(policy::parse_limit(text));
  give_costs(read_costs(options.limits.costs), channels);
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < channels.size(); ++i)
    if (channels[i].costs != nullptr)
      rows.push_back({{"limit", options.limits.limits[i]},
                      {"cost", policy::carried_text(*channels[i].costs)}});
  return rows;
}

/// Null for a word that is no path of ours: it may name a target of the policy.
nlohmann::json place_row(std::string const& target, std::string const& origin) {
  try {
    policy::place const at = policy::find_place(target);
    return {{"target", target},  {"path", at.path},         {"device", at.device},
            {"inode", at.inode}, {"mount_id", at.mount_id}, {"identity", at.identity}};
  } catch (error const& e) {
    if (target.find('/') == target.npos) return nullptr;
    throw usage_error(fmt::format("{}: {}", origin, e.what()));
  }
}

/// Where the targets lie, with our rights: the daemon looks at no path of a user.
nlohmann::json places_of(run_options const& options) {
  std::map<std::string, std::string> origins;
  for (auto const& text : options.limits.limits) {
    auto const c = policy::parse_limit(text);
    if (!c.target.empty()) origins.emplace(c.target, c.origin);
  }
  for (auto const& text : from_the_root(options.limits.orders)) {
    auto const target = policy::parse_order_target(text);
    origins.emplace(target.path, target.origin);
  }
  for (auto const& text : from_the_root(options.limits.small)) {
    auto const target = policy::parse_small_target(text);
    if (!target.path.empty()) origins.emplace(target.path, target.origin);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (auto const& [target, origin] : origins)
    if (auto row = place_row(target, origin); !row.is_null()) rows.push_back(std::move(row));
  return rows;
}

nlohmann::json join_request(run_options const& options) {
  std::error_code failed;
  unsigned const parts = paths_wanted(options).parts;
  return {{"verb", "join"},
          {"job", or_null(options.job)},
          {"class", or_null(options.limits.qos_class)},
          {"limits", options.limits.limits},
          {"costs", costs_of(options)},
          {"orders", from_the_root(options.limits.orders)},
          {"small", from_the_root(options.limits.small)},
          {"places", places_of(options)},
          {"policy_channels", true},
          {"monitor", options.limits.monitor},
          {"path_parts", parts == 0 ? nlohmann::json(nullptr) : nlohmann::json(parts)},
          {"cwd", fs::current_path(failed).string()}};
}

/// ld.so splits LD_PRELOAD at these, and says on the program's standard error what it cannot load.
bool can_preload(std::string const& path) {
  return path.starts_with('/') && path.find_first_of(" \t\n:$") == std::string::npos &&
         access(path.c_str(), R_OK) == 0;
}

membership read_membership(nlohmann::json const& answer) {
  membership m;
  m.job = answer.value("job", "");
  m.preload = answer.value("preload", "");
  m.segment = answer.value("segment", "");
  if (m.job.empty() || !can_preload(m.preload))
    throw sluice_error(fmt::format("its library \"{}\" cannot be preloaded", m.preload));
  return m;
}

bool has_journal(daemon_search const& search) {
  return search.found && search.found->role == "node" && search.found->has_journal;
}

/// A daemon is there: the user has to know that nothing of it holds.
void say_alone(std::string const& why) {
  on_stderr("sluice: warning: running without a daemon: {}\n", why);
}

std::string why_no_journal(daemon_search const& search) {
  if (!search.found) return "no daemon answers: " + search.why;
  return fmt::format("{} keeps no journal, which --order needs", search.found->socket);
}

/// Tries that follow each other. A wait of some length is told once.
class patience {
 public:
  /// Sleeps a moment. False: they have lasted for `most_ns`, and no more are to follow.
  bool has_more(std::int64_t most_ns, std::string_view why) {
    std::int64_t const now_ns = steady_ns();
    if (now_ns - since_ns_ >= most_ns) return false;
    if (now_ns - since_ns_ >= most_silence_ns && !std::exchange(is_told_, true))
      on_stderr("sluice: waiting: {}\n", why);
    sleep_until(now_ns + ask_again_ns);
    return true;
  }
  std::int64_t lasted_ms() const { return (steady_ns() - since_ns_) / 1'000'000; }

 private:
  std::int64_t since_ns_ = steady_ns();
  bool is_told_ = false;
};

/// Asks to join. What a crash left in the user's journal may have to come home first, jobs of his
/// that are over may have to go, or files that fill RUN may have to be cut back, which takes a
/// moment.
membership ask_patiently(daemon_at const& daemon, run_options const& options) {
  nlohmann::json request = join_request(options);
  for (patience tries;;) try {
      request["asked_ms"] = tries.lasted_ms();
      return read_membership(ask(daemon, request, join_ms));
    } catch (local::hung_up const& e) {
      if (!tries.has_more(most_place_wait_ns, e.what())) throw;
    } catch (error const& e) {
      bool const is_home_soon = e.status() == exit_later;
      if (!is_home_soon && e.status() != exit_full) throw;
      if (tries.has_more(most_wait_ns, e.what())) continue;
      if (is_home_soon) throw usage_error(std::string(e.what()) + "; try again later");
      throw;
    }
}

/// Several programs that begin at once may find no place with the daemon for a moment.
daemon_search find_patiently(global_options const& global) {
  for (patience tries;;) {
    auto search = find_daemon(global, hello_ms);
    if (search.found || !search.is_full || !tries.has_more(most_place_wait_ns, search.why))
      return search;
  }
}

struct attempt {
  std::optional<membership> joined;
  std::string why;      // there is none
  bool is_odd = false;  // a daemon is there: the user has to know
};

attempt join_daemon(global_options const& global, run_options const& options) {
  auto const search = find_patiently(global);
  if (!search.found) return {std::nullopt, search.why, search.is_there};
  daemon_at const& daemon = *search.found;
  if (daemon.role != "node")
    return {std::nullopt, fmt::format("{} is a {} daemon", daemon.socket, daemon.role)};
  if (!daemon.is_trusted)
    throw sluice_error(
        fmt::format("the daemon at {} runs as another user: its library will not be loaded into "
                    "your programs; choose another --run-dir, or --no-daemon",
                    daemon.socket));
  try {
    return {ask_patiently(daemon, options), {}};
  } catch (error const& e) {
    if (e.status() == exit_usage) throw;  // what was asked is wrong, or not allowed
    return {std::nullopt, fmt::format("{}: {}", daemon.socket, e.what()), true};
  } catch (nlohmann::json::exception const&) {
    return {std::nullopt, daemon.socket + ": its answer is not valid", true};
  }
}

// ---- alone ----

std::uint64_t own_word() {
  auto const self = static_cast<std::uint32_t>(getpid());
  return abi::holder_word(self, start_ticks(self));
}

std::string anonymous_name(std::string const& run_dir) {
  std::string const name = fmt::format("run-{}", getpid());
  std::error_code failed;
  std::string free = name;
  // A background process of an earlier run with our pid may still own the plain name.
  for (int i = 2; fs::exists(segment::job_dir(run_dir, free), failed); ++i)
    free = fmt::format("{}-{}", name, i);
  return free;
}

void join_running(membership& m, run_options const& options, policy::compiled const& limits) {
  auto const existing = segment::mapping::open(m.segment);
  if (options.limits.any() && existing->head.limits_hash != limits.hash)
    throw usage_error(fmt::format(
        "job {} is running with other limits: leave them out to join it, or change them with "
        "`sluice set {} CHANNEL=RATE`",
        m.job, m.job));
  m.holder_before = existing->head.holder.exchange(own_word());
}

/// A small `ulimit -f` is told in words, and not by a signal that ends us.
class size_limit_told {
 public:
  size_limit_told() {
    struct sigaction ignored = {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignored, &before_);
  }
  ~size_limit_told() { sigaction(SIGXFSZ, &before_, nullptr); }
  size_limit_told(size_limit_told const&) = delete;
  size_limit_told& operator=(size_limit_told const&) = delete;

 private:
  struct sigaction before_ = {};
};

membership make_or_join(std::string const& run_dir, run_options const& options,
                        policy::compiled const& limits) {
  membership m;
  m.run_dir = run_dir;
  std::string const library = find_library();
  segment::file_lock const lock(m.run_dir + "/lock");
  size_limit_told const told;
  segment::collect_garbage(m.run_dir, segment::collector::command);
  m.job = options.job.empty() ? anonymous_name(m.run_dir) : options.job;
  m.preload = segment::job_dir(m.run_dir, m.job) + "/libinterpose.so";
  m.segment = segment::segment_path(m.run_dir, m.job);
  if (segment::create(m.run_dir, m.job, library, limits))
    m.backgrounds = limits.backgrounds;
  else
    join_running(m, options, limits);
  if (unsigned const parts = paths_wanted(options).parts; parts != 0) {
    auto const memory = segment::mapping::open(m.segment);
    segment::add_path_area(m.segment, geteuid(), getegid(), parts);
    memory->head.areas.fetch_or(abi::paths_beside);
  }
  return m;
}

/// Where no job can be made, for want of a home, of room, of /proc, that is told, and the program
/// runs without limits, for it must run. `why`: what to say of a QoS class, which only a daemon or
/// a policy knows.
membership enter_alone(global_options const& global, run_options const& options,
                       std::string const& why) {
  policy::compiled const limits = compile_limits(options.limits, why);
  if (!global.run_dir.empty()) return make_or_join(own_run_dir(global), options, limits);
  try {
    return make_or_join(segment::run_dir_somewhere(), options, limits);
  } catch (error const& e) {
    if (e.status() == exit_usage) throw;
    on_stderr("sluice: warning: the program runs without limits: {}\n", e.what());
    return {};
  }
}

}  // namespace

membership enter(global_options const& global, run_options const& options) {
  // A policy file is the user's own word; the daemon has its policy.
  if (!options.limits.policy.empty()) return enter_alone(global, options, {});
  if (global.no_daemon) return enter_alone(global, options, "--no-daemon keeps from asking one");
  // A journal of one's own needs a job of one's own.
  if (!options.order_journal.empty())
    return enter_alone(global, options, "with --order-journal a job does without the daemon");
  if (!options.limits.orders.empty())
    if (auto const search = find_patiently(global); !has_journal(search)) {
      if (search.is_there && !search.found) say_alone(search.why);
      return enter_alone(global, options, why_no_journal(search));
    }
  attempt const tried = join_daemon(global, options);
  if (tried.joined) {
    warn_of_limits(options.limits);
    return *tried.joined;
  }
  run_options alone = options;
  std::string const qos_class = std::exchange(alone.limits.qos_class, {});
  if (!qos_class.empty())
    on_stderr("sluice: warning: {} ({}): QoS class {} has no limits here\n",
              tried.is_odd ? "the daemon cannot be used" : "no daemon", tried.why, qos_class);
  else if (tried.is_odd)
    say_alone(tried.why);
  else if (global.verbose)
    on_stderr("sluice: running without a daemon: {}\n", tried.why);
  return enter_alone(global, alone, tried.why);
}

void leave(membership const& m) noexcept try {
  if (m.run_dir.empty()) return;
  segment::file_lock const lock(m.run_dir + "/lock");
  {
    auto const s = segment::mapping::open(m.segment);
    std::uint64_t self = own_word();
    s->head.holder.compare_exchange_strong(self, m.holder_before);
    if (segment::is_live(*s)) return;
  }
  segment::remove_job(m.run_dir, m.job);
} catch (std::exception const& e) {
  std::fprintf(stderr, "sluice: warning: job %s was not cleared away: %s\n", m.job.c_str(),
               e.what());
}

}  // namespace sluice::cli
