// SPDX-License-Identifier: Apache-2.0
// sluice explain: CALL PATH says which limits such a call meets and why; PID says what a process
// waits for; --job says it of a whole job, in the words of its daemon when it has one.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/printable.h"
#include "base/process_mark.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "calls.h"
#include "commands/cli/daemon.h"
#include "commands/cli/explain_job.h"
#include "commands/cli/hold_back.h"
#include "commands/cli/job.h"
#include "commands/cli/limits.h"
#include "commands/cli/options.h"
#include "commands/cli/program.h"
#include "commands/cli/report.h"
#include "commands/cli/small_rows.h"
#include "policy/compile.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"
#include "segment/small_look.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

/// An op by its own name or by that of a call.
core::op find_op(std::string const& name) {
  std::vector<std::string> known;
  for (unsigned i = 0; i < core::op_count; ++i) {
    known.emplace_back(core::op_table[i].name);
    if (core::op_table[i].name == name) return static_cast<core::op>(i);
  }
  for (auto const& row : call_table) {
    known.emplace_back(row.name);
    if (row.name == name) return row.op;
  }
  throw usage_error(fmt::format("explain: no call \"{}\"{}", name, did_you_mean(name, known)));
}

struct question {
  core::op op;
  std::string path;  // canonical as far as it exists
  unsigned target = 0;
  std::string mounted_at;  // below the target's root; empty: it lies on the target's file system
  std::string never;       // why no rule can ever apply; empty: they may
};

std::string why_never(core::ruleset const& rules, std::string const& path) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) return {};
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
    return "it is neither a regular file nor a directory";
  std::uint64_t const device = std::uint64_t{major(st.st_dev)} << 32 | minor(st.st_dev);
  auto const* const end = rules.quiet_device + std::min(rules.quiet_count, core::max_quiet_devices);
  if (std::find(rules.quiet_device, end, device) != end)
    return "its file system lives in the kernel alone";
  return {};
}

/// What is mounted below a target lies in it, if the target is more than one file system.
void look_at_mounts(core::ruleset const& rules, question& q) {
  auto const mounts = read_mounts();
  policy::mount const* const m = policy::mount_of(mounts, {q.path});
  auto const root = core::view(rules, rules.target[q.target].path);
  if (m == nullptr || m->point == root || !lies_below(m->point, root)) return;
  q.mounted_at = m->point;
  q.target = core::with_mounts_below(rules, q.target);
}

question ask(core::ruleset const& rules, std::string const& call, std::string const& path) {
  question q;
  q.op = find_op(call);
  std::error_code failed;
  q.path = fs::weakly_canonical(fs::absolute(path, failed), failed).string();
  if (failed || q.path.empty())
    throw usage_error(fmt::format("explain: {}: {}", path, failed.message()));
  std::size_t deepest = 0;
  for (unsigned t = 1; t < rules.target_count; ++t) {
    auto const root = core::view(rules, rules.target[t].path);
    if (lies_below(q.path, root) && root.size() >= deepest) {
      deepest = root.size();
      q.target = t;
    }
  }
  if (q.target != 0) look_at_mounts(rules, q);
  q.never = why_never(rules, q.path);
  return q;
}

/// Empty when the rule applies; else why not.
std::string why_not(core::ruleset const& rules, unsigned r, question const& q) {
  core::rule_row const& rule = rules.rule[r];
  if ((rule.ops & core::op_bit(q.op)) == 0)
    return fmt::format("is not about {}", core::op_table[static_cast<unsigned>(q.op)].name);
  if (rule.target != core::any_target && !core::is_within(rules, q.target, rule.target))
    return fmt::format("is about {}", core::view(rules, rules.target[rule.target].path));
  if ((core::path_rules(rules, q.path) >> r & 1) == 0)
    return fmt::format("is about files like {}", core::view(rules, rule.path_glob));
  if (rule.user != core::any_user && rule.user != getuid())
    return fmt::format("is about uid {}, we are {}", rule.user, getuid());
  return {};
}

json explain_call(policy::compiled const& limits, std::string const& call,
                  std::string const& path) {
  core::ruleset const& rules = *limits.rules;
  question const q = ask(rules, call, path);
  core::op_row const& op = core::op_table[static_cast<unsigned>(q.op)];
  json out = {{"call", call},
              {"op", op.name},
              {"class", core::class_names[static_cast<unsigned>(op.cls)]},
              {"path", q.path},
              {"target", q.target == 0 ? json(nullptr)
                                       : json(core::view(rules, rules.target[q.target].path))},
              {"mounted_at", q.mounted_at.empty() ? json(nullptr) : json(q.mounted_at)},
              {"never", q.never.empty() ? json(nullptr) : json(q.never)},
              {"rules", json::array()}};
  if (json row = segment::small_row(rules, limits, q.target); !row.is_null() && q.never.empty())
    out["small"] = {{"targets", {std::move(row)}}};
  for (unsigned r = 0; r < rules.rule_count; ++r) {
    std::string const no = q.never.empty() ? why_not(rules, r, q) : q.never;
    core::rule_row const& rule = rules.rule[r];
    json row = {{"name", core::view(rules, rules.channel[rule.channel].name)},
                {"applies", no.empty()},
                {"rule", describe(rules, r, limits.curves[rule.channel].rate_q40)}};
    if (!no.empty()) row["why_not"] = no;
    if (no.empty() && rule.thread_glob.length != 0)
      row["if"] = fmt::format("the thread is named like {}", core::view(rules, rule.thread_glob));
    if (no.empty() && rule.role.length != 0)
      row["if"] = fmt::format("the role is {}", core::view(rules, rule.role));
    out["rules"].push_back(row);
  }
  return out;
}

void print_call(json const& e) {
  fmt::print("{} ({}, class {}) on {}\n", e["call"].get<std::string>(), e["op"].get<std::string>(),
             e["class"].get<std::string>(), e["path"].get<std::string>());
  if (!e["mounted_at"].is_null())
    fmt::print("  lies on the mount {}\n", e["mounted_at"].get<std::string>());
  if (!e["target"].is_null()) fmt::print("  lies in {}\n", e["target"].get<std::string>());
  if (!e["never"].is_null()) fmt::print("  never limited: {}\n", e["never"].get<std::string>());
  int place = 0;
  for (auto const& rule : e["rules"]) {
    bool const applies = rule["applies"];
    fmt::print("  {} {}", applies ? fmt::format("{}.", ++place) : "no",
               rule["rule"].get<std::string>());
    if (rule.contains("if")) fmt::print(", if {}", rule["if"].get<std::string>());
    if (!applies && e["never"].is_null()) fmt::print(": {}", rule["why_not"].get<std::string>());
    fmt::print("\n");
  }
  fmt::print("{}", small_lines(e));
  bool const has_daemon = e.contains("daemon");
  if (place == 0) fmt::print("  no limit{} applies\n", has_daemon ? " of this command line" : "");
  if (has_daemon)
    fmt::print(
        "  The daemon at {} gives jobs the limits of their class as well:\n"
        "    sluice policy get             what it has\n"
        "    sluice explain --job JOB      what a job gets of it\n",
        e["daemon"]["socket"].get<std::string>());
}

std::string call_name(std::uint32_t call) {
  return call < call_count ? std::string(call_table[call].name) : fmt::format("call {}", call);
}

/// Threads of the process in this slot that wait now.
json waiting_threads(foreign<abi::segment> const& s, core::ruleset const& rules,
                     std::uint32_t slot) {
  constexpr auto relaxed = std::memory_order_relaxed;
  json out = json::array();
  unsigned const used = std::min(s.head.shards_used.load(relaxed), abi::owned_shards);
  for (unsigned i = 0; i < used + abi::common_shards; ++i) {
    foreign<abi::waiter> const& w = i < used ? s.owned[i].waiting : s.common[i - used].waiting;
    std::uint32_t const channel = w.channel.load(std::memory_order_acquire);
    if (w.slot.load(relaxed) != slot + 1 || channel == 0 || channel > rules.channel_count) continue;
    core::ticket const t{w.ticket.load(relaxed), w.amount.load(relaxed), false};
    std::int64_t const now_ns = steady_ns();
    auto const since_ns = static_cast<std::int64_t>(w.since_ns.load(relaxed));
    bool const paused = rate_of(s, channel - 1) == 0;
    json row = {{"tid", w.tid.load(relaxed)},
                {"call", call_name(w.call.load(relaxed) & ~abi::waiter::is_made)},
                {"channel", core::view(rules, rules.channel[channel - 1].name)},
                {"waited_ns", std::max<std::int64_t>(0, now_ns - since_ns)},
                {"due_ns", nullptr}};
    if (!paused) row["due_ns"] = core::due_ns(as_shared(s.bucket[channel - 1]), t, now_ns);
    out.push_back(row);
  }
  return out;
}

/// Empty: nothing is in the way of limits. A stranger chooses where his program lies, and what its
/// first line names: opening that may wait for ever, or do harm.
std::string why_not_limited(std::uint32_t pid) {
  std::string const exe = fmt::format("/proc/{}/exe", pid);
  std::error_code failed;
  bool const is_ours = !fs::read_symlink(exe, failed).empty() && uid_of(pid) == geteuid();
  if (!is_ours) return {};
  auto const facts = inspect_program(exe);
  return facts.limited ? std::string() : facts.why;
}

json explain_in_job(foreign<abi::segment> const& s, segment::live_process const& process) {
  auto const rules = segment::shown_rules_of(s);
  json out = {{"pid", process.pid},
              {"name", process.name},
              {"job", segment::job_name(s)},
              {"rules", json::array()},
              {"waiting", waiting_threads(s, *rules, process.slot)}};
  // It attached as another program, and has become this one since.
  if (std::string const why = why_not_limited(process.pid); !why.empty()) out["not_limited"] = why;
  for (unsigned r = 0; r < rules->rule_count; ++r)
    out["rules"].push_back(describe(*rules, r, rate_of(s, rules->rule[r].channel)));
  return out;
}

std::optional<json> explain_process(global_options const& global, std::uint32_t pid) {
  for (auto const& [path, owner] : segments_in_reach(global)) {
    try {
      auto const s = segment::mapping::open(path, owner);
      for (auto const& process : segment::live_processes(*s, owner))
        if (process.pid == pid) {
          json out = explain_in_job(*s, process);
          put_small(out, *s, path, owner);
          return out;
        }
    } catch (error const&) {
      continue;  // it has just ended, is not there, or not ours to read
    }
  }
  return std::nullopt;
}

void print_process(json const& e) {
  fmt::print("process {} ({}) is in job {}\n", e["pid"].get<std::uint32_t>(),
             e["name"].get<std::string>(), e["job"].get<std::string>());
  if (e.contains("not_limited"))
    fmt::print("  not limited: {}\n", one_line(e["not_limited"].get<std::string>()));
  for (auto const& rule : e["rules"]) fmt::print("  limit {}\n", rule.get<std::string>());
  for (auto const& w : e["waiting"])
    fmt::print("  thread {} waits in {} for \"{}\", since {}, {}\n", w["tid"].get<std::uint32_t>(),
               w["call"].get<std::string>(), w["channel"].get<std::string>(),
               time_words(w["waited_ns"]),
               w["due_ns"].is_null() ? std::string("until it is resumed or set")
                                     : "due in " + time_words(w["due_ns"]));
  if (e["waiting"].empty()) fmt::print("  no thread waits for a limit\n");
  fmt::print("{}", small_lines(e));
}

int no_job(std::uint32_t pid) {
  std::string const proc = fmt::format("/proc/{}", pid);
  std::error_code failed;
  if (!fs::exists(proc, failed))
    throw usage_error(fmt::format("explain: there is no process {}", pid));
  std::string const exe = fs::read_symlink(proc + "/exe", failed);
  std::string const why = why_not_limited(pid);
  throw error(1, fmt::format("process {} ({}) is in no job of this run directory{}", pid,
                             one_line(exe), why.empty() ? "" : ": " + one_line(why)));
}

int explain_pid(global_options const& global, std::string const& word) {
  std::uint32_t pid = 0;
  if (!to_number(word, pid) || pid == 0)
    throw usage_error(fmt::format("explain: wanted PID, CALL PATH or --job, not \"{}\"", word));
  auto const found = explain_process(global, pid);
  if (!found) return no_job(pid);
  if (global.json)
    fmt::print("{}", dump(*found));
  else
    print_process(*found);
  return 0;
}

/// A job without a daemon: each of its processes.
int explain_own_job(global_options const& global, std::string const& name) {
  open_job const job = find_job(global, name);
  json out = {{"job", name}, {"processes", json::array()}};
  for (auto const& process : segment::live_processes(*job.segment, job.owner))
    out["processes"].push_back(explain_in_job(*job.segment, process));
  put_small(out, job);
  put_roles(out, segment::segment_path(job.run_dir, job.name), job.owner);
  put_background(out, segment::segment_path(job.run_dir, job.name), job.owner);
  if (global.json) {
    fmt::print("{}", dump(out));
    return 0;
  }
  fmt::print("job {} runs without a daemon\n", name);
  fmt::print("{}{}{}", small_lines(out), roles_table(out), background_lines(out));
  for (auto const& process : out["processes"]) print_process(process);
  return 0;
}

}  // namespace

int explain_verb(global_options const& global, explain_options const& options) {
  if (options.words.empty() == options.job.empty())
    throw usage_error("explain: wanted one of PID, CALL PATH and --job JOB");
  if (!options.job.empty()) {
    if (auto const daemon = daemon_of_job(global, options.job))
      return explain_by_daemon(global, *daemon, options.job);
    return explain_own_job(global, options.job);
  }
  if (options.words.size() == 1) return explain_pid(global, options.words[0]);
  json out = explain_call(compile_limits(options.limits, "of a call and a path no daemon is asked"),
                          options.words[0], options.words[1]);
  auto const daemon = find_daemon(global, hello_ms).found;
  if (daemon && daemon->role == "node") out["daemon"] = {{"socket", daemon->socket}};
  if (global.json)
    fmt::print("{}", dump(out));
  else
    print_call(out);
  return 0;
}

}  // namespace sluice::cli
