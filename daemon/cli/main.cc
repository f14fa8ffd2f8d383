// SPDX-License-Identifier: Apache-2.0
// The sluice command: the table of verbs and options. What a verb does is in the file of its name.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <new>

#include "cli/options.h"
#include "policy/error.h"

namespace sluice::cli {

namespace {

constexpr char const* version = "0.1.0";

/// Everything the command line can fill, and the verb it chose.
struct command_line {
  global_options global;
  run_options run;
  stat_options stat;
  set_options set;
  explain_options explain;
  std::string job;
  std::string file;
  std::function<int()> chosen;
};

void add_limit_options(CLI::App& app, limit_options& limits) {
  app.add_option(
         "--limit", limits.limits,
         "SELECTOR=AMOUNT[@TARGET], for example open=1000/s, data=200MiB/s@/scratch; repeatable")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  app.add_option("--policy", limits.policy, "limits from a policy file")->type_name("FILE");
  app.add_option("--class", limits.qos_class, "the QoS class of the policy whose limits apply")
      ->type_name("NAME");
  app.add_flag("--monitor", limits.monitor, "count and measure, never delay");
}

void add_run(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("run", "run a program with limits");
  add_limit_options(*verb, line.run.limits);
  verb->add_option("--job", line.run.job, "name the job, or join it if it is running")
      ->type_name("NAME");
  verb->add_option("--report", line.run.report,
                   "write a JSON report at the end; - is standard output")
      ->type_name("FILE");
  verb->add_flag_callback(
      "--summary", [&line] { line.run.summary = true; },
      "print a table at the end (default on a terminal)");
  verb->add_flag_callback(
      "--no-summary", [&line] { line.run.summary = false; }, "print none");
  verb->footer("Everything after -- is the program and its arguments.");
  verb->callback([&line] { line.chosen = [&line] { return run_verb(line.global, line.run); }; });
}

void add_job_verb(CLI::App& app, command_line& line, std::string const& name,
                  std::string const& help,
                  int (*action)(global_options const&, std::string const&)) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("JOB", line.job, "name of the job")->required();
  verb->callback(
      [&line, action] { line.chosen = [&line, action] { return action(line.global, line.job); }; });
}

void add_control(CLI::App& app, command_line& line) {
  auto* stat = app.add_subcommand("stat", "show what a job does");
  stat->add_option("-i", line.stat.interval_s, "again every SEC seconds, with rates")
      ->type_name("SEC");
  stat->add_option("JOB", line.stat.job, "name of the job")->required();
  stat->callback([&line] { line.chosen = [&line] { return stat_verb(line.global, line.stat); }; });

  auto* set = app.add_subcommand("set", "change a limit of a running job");
  set->add_option("JOB", line.set.job, "name of the job")->required();
  set->add_option("CHANNEL=RATE", line.set.assignment, "for example open=500/s")->required();
  set->callback([&line] { line.chosen = [&line] { return set_verb(line.global, line.set); }; });

  add_job_verb(app, line, "pause", "let limited calls of a job wait until resumed", pause_verb);
  add_job_verb(app, line, "resume", "end a pause", resume_verb);
  auto* jobs = app.add_subcommand("jobs", "list the jobs of this user on this node");
  jobs->callback([&line] { line.chosen = [&line] { return jobs_verb(line.global); }; });
}

void add_policy(CLI::App& app, command_line& line) {
  auto* policy = app.add_subcommand("policy", "look at a policy file");
  policy->require_subcommand(1);
  auto* check =
      policy->add_subcommand("check", "say in words what a policy means, or what is wrong");
  check->add_option("FILE", line.file)->required();
  check->callback(
      [&line] { line.chosen = [&line] { return policy_check(line.global, line.file); }; });
  auto* show = policy->add_subcommand("show", "print a policy with all units resolved, as JSON");
  show->add_option("FILE", line.file)->required();
  show->callback(
      [&line] { line.chosen = [&line] { return policy_show(line.global, line.file); }; });
}

void add_looking(CLI::App& app, command_line& line) {
  auto* explain =
      app.add_subcommand("explain", "say which limits a call meets, or why a process waits");
  add_limit_options(*explain, line.explain.limits);
  explain->add_option("WORDS", line.explain.words, "PID, or CALL PATH")->required()->expected(1, 2);
  explain->callback(
      [&line] { line.chosen = [&line] { return explain_verb(line.global, line.explain); }; });
  auto* doctor =
      app.add_subcommand("doctor", "say whether a program can be limited, and if not, why");
  doctor->add_option("FILE", line.file, "a program, by name or path")->required();
  doctor->callback(
      [&line] { line.chosen = [&line] { return doctor_verb(line.global, line.file); }; });
}

void describe_app(CLI::App& app, command_line& line) {
  app.name("sluice");
  app.set_version_flag("--version", std::string("sluice ") + version);
  app.add_option("--run-dir", line.global.run_dir, "where the segments of jobs lie")
      ->type_name("DIR");
  app.add_flag("--json", line.global.json, "print JSON");
  app.add_flag("-v,--verbose", line.global.verbose, "say what is done");
  app.require_subcommand(1);
  app.fallthrough();
  add_run(app, line);
  add_control(app, line);
  add_policy(app, line);
  add_looking(app, line);
  for (auto* verb : app.get_subcommands({})) verb->fallthrough();
}

bool takes_value(std::string const& word) {
  static constexpr std::string_view with_value[] = {"--limit", "--policy", "--class",
                                                    "--job",   "--report", "--run-dir"};
  return std::find(std::begin(with_value), std::end(with_value), word) != std::end(with_value);
}

/// `sluice run … [--] PROGRAM …`: from PROGRAM on, nothing is an option of ours.
void split_command(std::vector<std::string>& words, command_line& line) {
  bool run = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (run && words[i] == "--") {
      line.run.command.assign(words.begin() + std::ptrdiff_t(i) + 1, words.end());
      words.resize(i);
    } else if (words[i].starts_with("-")) {
      if (takes_value(words[i])) ++i;
    } else if (run) {
      line.run.command.assign(words.begin() + std::ptrdiff_t(i), words.end());
      words.resize(i);
    } else if (words[i] == "run") {
      run = true;
    } else {
      return;  // another verb
    }
  }
}

int parse_and_do(int argc, char** argv) {
  CLI::App app("sluice meters the file I/O of jobs that share a file system.");
  command_line line;
  describe_app(app, line);
  std::vector<std::string> words(argv + 1, argv + argc);
  split_command(words, line);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} (sluice --help tells more)", e.what()));
  }
  return line.chosen();
}

}  // namespace

}  // namespace sluice::cli

int main(int argc, char** argv) {
  try {
    return sluice::cli::parse_and_do(argc, argv);
  } catch (sluice::error const& e) {
    fmt::print(stderr, "sluice: {}\n", e.what());
    return e.status();
  } catch (std::exception const& e) {
    fmt::print(stderr, "sluice: {}\n", e.what());
    return sluice::exit_sluice;
  }
}
