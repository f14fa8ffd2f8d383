// SPDX-License-Identifier: Apache-2.0
// sluice run: make or join a job, put the library in front of the program, start it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/on_stderr.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "commands/cli/hold_back.h"
#include "commands/cli/join.h"
#include "commands/cli/journal_child.h"
#include "commands/cli/options.h"
#include "commands/cli/paths.h"
#include "commands/cli/program.h"
#include "commands/cli/recorder.h"
#include "commands/cli/report.h"
#include "commands/cli/sampler.h"
#include "commands/cli/supervise.h"
#include "commands/cli/timeline.h"
#include "keepers/lease_keeper.h"
#include "keepers/write_keeper.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

/// Ours plus LD_PRELOAD, which goes before what the user preloads.
std::vector<std::string> environment(membership const& m, bool preload) {
  std::vector<std::string> out;
  std::string value = m.preload;
  for (char** e = environ; *e != nullptr; ++e) {
    bool const is_preload = std::strncmp(*e, "LD_PRELOAD=", 11) == 0;
    if (preload && is_preload) {
      if ((*e)[11] != 0) value += fmt::format(":{}", *e + 11);
    } else {
      out.emplace_back(*e);
    }
  }
  if (preload) out.push_back("LD_PRELOAD=" + value);
  return out;
}

void warn_if_unlimited(program_facts const& program) {
  if (!program.limited)
    on_stderr("sluice: warning: {} will not be limited: {}\n", one_line(program.path),
              one_line(program.why));
}

bool wants_summary(run_options const& options) {
  bool const is_only_place = !options.paths.empty() && options.report.empty();
  return options.summary.value_or(is_only_place || isatty(STDERR_FILENO) == 1);
}

/// Null when it cannot be read: a daemon of another version made it. That stops no program.
std::optional<segment::mapping> open_segment(membership const& m) {
  try {
    return segment::mapping::open(m.segment);
  } catch (error const& e) {
    if (!m.run_dir.empty()) throw;
    on_stderr("sluice: warning: no report and no record: {}\n", e.what());
    return std::nullopt;
  }
}

/// Told before the program starts, not after hours.
void check_file(char const* option, std::string const& path) {
  try {
    if (!path.empty()) check_output_file(path);
  } catch (error const& e) {
    throw usage_error(fmt::format("{} {}", option, e.what()));
  }
}

void write_report(std::string const& path, std::string const& text) {
  output_file to(path);
  to.stream() << text;
  to.commit();
}

constexpr std::int64_t shortest_interval_ns = 10'000'000, record_interval_ns = 1'000'000'000;

/// Nobody said how long intervals are: those of a report grow with the run. A trace has one length.
bool grows(run_options const& options) {
  return options.interval.empty() && options.record.empty();
}

std::int64_t interval_ns_of(run_options const& options) {
  if (grows(options)) return timeline::first_interval_ns;
  if (options.interval.empty()) return record_interval_ns;
  auto const ns = parse_duration(options.interval, "--interval");
  if (ns < shortest_interval_ns)
    throw usage_error(
        fmt::format("--interval: \"{}\" is too short; 10ms is the shortest", options.interval));
  return ns;
}

double precise_unix_s() { return static_cast<double>(unix_ns()) / 1e9; }

/// A trace that cannot be written changes nothing for the program.
void end_record(recorder const& record, run_options const& options, double start_unix_s) {
  try {
    trace::write(record.result(options.command, start_unix_s), options.record);
  } catch (std::exception const& e) {
    on_stderr("sluice: --record: {}\n", e.what());
  }
}

/// A daemon's job has its user's journal on the node, one that we joined has that of who made it.
std::unique_ptr<journal_child> own_journal(std::optional<segment::mapping> const& s,
                                           membership const& m, run_options const& options) {
  if (!s || m.run_dir.empty() || m.holder_before != 0) return nullptr;
  return serve_journal(**s, m.segment, options.order_journal);
}

bool wants_journal(membership const& m, run_options const& options) {
  if (!options.order_journal.empty()) return true;
  std::error_code failed;
  return !m.run_dir.empty() && (!options.limits.orders.empty() ||
                                std::filesystem::exists(segment::order_path(m.segment), failed));
}

/// The program has run: how it ended is what counts from here on.
template <typename Work>
void at_the_end(char const* what, Work&& work) {
  try {
    work();
  } catch (std::exception const& e) {
    on_stderr("sluice: warning: {}: {}\n", what, e.what());
  }
}

void put_what_was_held_back(json& result, membership const& m) {
  if (m.run_dir.empty())
    put_background_of_daemon(result, m.segment, m.job);
  else
    put_background(result, m.segment, std::int64_t{geteuid()});
}

/// None: there is nothing to do.
chore work_meanwhile(journal_child* log, std::optional<hold_back>& background,
                     std::optional<sampler>& samples) {
  if (log == nullptr && !background && !samples) return {};
  return [=, &background, &samples, sample_ns = std::int64_t{0}]() mutable {
    std::int64_t const now_ns = steady_ns();
    std::int64_t due_ns = std::numeric_limits<std::int64_t>::max();
    if (log != nullptr) due_ns = log->look(now_ns);
    if (background) due_ns = std::min(due_ns, background->look(now_ns));
    // To sum all counters takes a while: not as often as limits of roles are set.
    if (samples && (!background || now_ns >= sample_ns)) sample_ns = samples->look(now_ns);
    return samples ? std::min(due_ns, sample_ns) : due_ns;
  };
}

[[noreturn]] void become_program(run_options const& options, std::vector<std::string> const& env) {
  int const why = become(options.command, env);
  throw error(
      status_of_exec_failure(why),
      fmt::format("cannot execute {}: {}", printable(options.command[0]), std::strerror(why)));
}

int run_and_report(membership const& m, std::optional<segment::mapping> const& s,
                   run_options const& options, bool preload) {
  std::unique_ptr<journal_child> log = own_journal(s, m, options);
  auto leases = s ? keepers::lease_keeper::begin(**s, m.segment) : nullptr;
  auto writes = s ? keepers::write_keeper::begin(**s, m.segment) : nullptr;
  std::int64_t const begin_ns = steady_ns();
  run_facts facts;
  facts.command = options.command;
  facts.segment_path = m.segment;
  double const start_unix_s = precise_unix_s();
  std::optional<sampler> samples;
  std::optional<recorder> record;
  std::optional<timeline> time;
  bool const has_report = !options.report.empty();
  if (s && (has_report || !options.record.empty()))
    samples.emplace(**s, interval_ns_of(options), begin_ns,
                    grows(options) ? timeline::most_points : 0);
  if (samples && !options.record.empty()) {
    record.emplace(samples->interval_s());
    samples->listen([&](sample const& each) { record->take(each); });
  }
  if (samples && has_report) {
    time.emplace(**s, samples->interval_s(),
                 grows(options) ? timeline::most_points : timeline::most_intervals);
    samples->listen([&](sample const& each) { time->take(each); });
  }
  std::optional<hold_back> background;
  if (s && !m.backgrounds.empty()) background.emplace(**s, m.segment, m.backgrounds);
  try {
    facts.end = supervise(options.command, environment(m, preload),
                          work_meanwhile(log.get(), background, samples));
  } catch (no_process const& e) {
    on_stderr("sluice: warning: {}: the program runs without all that needs a process beside it\n",
              e.what());
    log.reset();
    leases.reset();
    writes.reset();
    become_program(options, environment(m, preload));
  }
  facts.elapsed_s = static_cast<double>(steady_ns() - begin_ns) / 1e9;
  auto const tell = [&] {
    if (samples) samples->finish(steady_ns());
    if (background) background->finish(steady_ns());
    log.reset();
    leases.reset();
    writes.reset();
    if (record) end_record(*record, options, start_unix_s);
    if (!s) return;
    json result = report_json(**s, facts);
    if (json order = order_json(m.segment); !order.is_null()) result["order"] = std::move(order);
    if (json after = after_json(m.segment); !after.is_null()) result["after"] = std::move(after);
    put_roles(result, m.segment, any_owner);
    put_what_was_held_back(result, m);
    if (!options.paths.empty()) put_paths(result, m.segment, paths_wanted(options).rows);
    if (time) {
      result["timeline"] = time->result(start_unix_s);
      result["rules"] = rules_json(**s);
    }
    if (wants_summary(options)) on_stderr("{}", report_table(result));
    if (has_report) write_report(options.report, result_text(result));
  };
  at_the_end("the report", tell);
  leave(m);
  std::fflush(nullptr);
  end_like(*facts.end);
}

void warn_of_another_clock(foreign<abi::segment> const& s) {
  if (abi::is_of_another_clock(s.head.created_ns, steady_ns()))
    on_stderr(
        "sluice: warning: the program runs without limits: its clock is not that of the daemon (a "
        "time namespace)\n");
}

/// No place for a segment: no limits, but the program.
[[noreturn]] int run_natively(run_options const& options) {
  if (!options.report.empty() || !options.record.empty())
    on_stderr("sluice: warning: no report and no record either\n");
  become_program(options, environment({}, false));
}

}  // namespace

int run_verb(global_options const& global, run_options const& options) {
  if (options.command.empty())
    throw usage_error("run: nothing to run; write: sluice run [OPTIONS] -- PROGRAM [ARGUMENTS]");
  if (!options.job.empty()) segment::check_job_name(options.job);
  program_facts const program = inspect_program(find_program(options.command[0]));
  interval_ns_of(options);
  paths_wanted(options);
  check_file("--report", options.report);
  check_file("--record", options.record);
  membership const m = enter(global, options);
  if (!m.is_there()) return run_natively(options);
  warn_if_unlimited(program);
  if (global.verbose)
    on_stderr("sluice: job {}{}, segment {}\n", m.job, m.run_dir.empty() ? " of the daemon" : "",
              m.segment);
  try {
    auto const s = open_segment(m);
    if (s) warn_of_another_clock(**s);
    if (s && m.run_dir.empty()) check_left_logs(**s, m.segment, {});
    bool const needs_leases =
        s && ((*s)->reads.head.targets != 0 || ((*s)->head.areas.load() & abi::rings_beside) != 0);
    if (!options.report.empty() || !options.record.empty() || wants_summary(options) ||
        wants_journal(m, options) || !m.backgrounds.empty() || needs_leases)
      return run_and_report(m, s, options, program.loads_library);
    become_program(options, environment(m, program.loads_library));
  } catch (error const&) {
    leave(m);
    throw;
  }
}

}  // namespace sluice::cli
