// SPDX-License-Identifier: Apache-2.0
// The sluice command: the table of verbs and options. What a verb does is in the file of its name.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "base/guard.h"
#include "base/number.h"
#include "base/old_option.h"
#include "base/program.h"
#include "base/suggest.h"
#include "commands/cli/options.h"

namespace sluice::cli {

namespace {

constexpr char const* version = "0.1.0";

/// Everything the command line can fill, and the verb it chose.
struct command_line {
  global_options global;
  run_options run;
  stat_options stat;
  set_options set;
  pause_options pause;
  explain_options explain;
  top_options top;
  order_options order;
  apply_options apply;
  version_options version;
  std::vector<std::string> forwarded;  // what follows a verb of another program
  std::string file;
  std::function<int()> chosen;
};

void add_limit_options(CLI::App& app, limit_options& limits) {
  app.add_option(
         "--limit", limits.limits,
         "SELECTOR[:ROLE]=AMOUNT[@TARGET], for example open=1000/s, data=200MiB/s@/scratch, "
         "vops=5k/s@/scratch, data:compaction=50MiB/s; repeatable")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  app.add_option("--cost", limits.costs,
                 "FILE[@TARGET]: what requests cost there, of `sluice calibrate`; for limits like "
                 "vops=5k/s@/scratch; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--policy", limits.policy, "limits from a policy file")->type_name("FILE");
  app.add_option("--class", limits.qos_class, "the QoS class, of the daemon or of --policy FILE")
      ->type_name("NAME");
  app.add_flag("--monitor", limits.monitor, "count and measure, never delay");
  app.add_flag("-q,--quiet", limits.quiet,
               "do not warn of limits that probably do not do what was meant");
}

void add_run(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("run", "run a program with limits");
  add_limit_options(*verb, line.run.limits);
  verb->add_option("--job", line.run.job, "name the job, or join it if it is running")
      ->type_name("NAME");
  verb->add_option("--report", line.run.report,
                   "write a JSON report at the end; - is standard output")
      ->type_name("FILE");
  verb->add_option("--record", line.run.record,
                   "write the trace of the program at the end: operations per interval")
      ->type_name("FILE");
  verb->add_option(
          "--order", line.run.limits.orders,
          "durable@DIR: fsync in DIR waits for a journal, not for the files. ordered@DIR: "
          "fsync returns at once, and the next change waits for it. ordered:STREAM@DIR: "
          "the next change of the process, job, thread (by name) or path (DIR). Repeatable")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  verb->add_option(
          "--order-journal", line.run.order_journal,
          "file of that journal (.sluice-order.UID.log in the first DIR, removed at the end)")
      ->type_name("FILE");
  add_old_option(*verb, "sluice", "--order-log", "--order-journal", line.run.order_journal);
  verb->add_option("--small", line.run.limits.small,
                   "hints, or hints@DIR: tell the kernel what small unaligned writes and strided "
                   "reads are about to need. reads, or reads@DIR: answer small reads from memory "
                   "while nobody has the file open for writing. strict, or strict@DIR: let small "
                   "writes wait a little; whoever opens the file finds them. Repeatable")
      ->type_name("WORD[@DIR]")
      ->allow_extra_args(false);
  verb->add_flag("--paths", line.run.paths,
                 "count the calls at each directory, and show the N used most (20): "
                 "--paths=N")
      ->transform([](std::string const& n) { return n == "true" ? std::string("20") : n; });
  verb->add_option("--paths-depth", line.run.paths_depth,
                   "parts of a directory's name that are kept (6); deeper directories count there")
      ->type_name("PARTS");
  verb->add_option("--interval", line.run.interval,
                   "how often the counters are read (1s with --record, otherwise from 20ms on)")
      ->type_name("TIME");
  verb->add_flag_callback(
      "--summary", [&line] { line.run.summary = true; },
      "print a table at the end (default on a terminal)");
  verb->add_flag_callback(
      "--no-summary", [&line] { line.run.summary = false; }, "print no table");
  verb->footer(
      "Everything after -- is the program and its arguments. The node's daemon is found\n"
      "automatically. Without one, or with --no-daemon or --policy, only the limits given here\n"
      "hold.\n\n"
      "  sluice run --class gold -- ./app\n"
      "  sluice run --limit open=1000/s --limit data=200MiB/s@/scratch --report io.json -- ./app\n"
      "  sluice run --record app.csv --interval 100ms -- ./app");
  verb->callback([&line] { line.chosen = [&line] { return run_verb(line.global, line.run); }; });
}

CLI::App* add_pause(CLI::App& app, command_line& line, std::string const& name,
                    std::string const& help,
                    int (*action)(global_options const&, pause_options const&)) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("JOB", line.pause.job, "name of the job; USER@NAME if several users have one")
      ->required();
  verb->footer(fmt::format("  sluice {0} hydro\n  sluice {0} ann@hydro", name));
  verb->callback([&line, action] {
    line.chosen = [&line, action] { return action(line.global, line.pause); };
  });
  return verb;
}

void add_control(CLI::App& app, command_line& line) {
  auto* set = app.add_subcommand("set", "change a limit or the QoS class of a running job");
  set->add_option("JOB", line.set.job, "name of the job; USER@NAME if several users have one of it")
      ->required();
  set->add_option("WHAT=VALUE", line.set.assignment,
                  "metadata=20k/s, open=500/s, class=bronze; =policy withdraws what was set")
      ->required();
  set->add_option("--for", line.set.how_long, "for this time only (needs a daemon)")
      ->type_name("TIME");
  set->footer(
      "  sluice set hydro open=500/s\n"
      "  sluice set hydro metadata@scratch=20k/s --for 10m\n"
      "  sluice set hydro class=bronze\n"
      "  sluice set hydro metadata@scratch=policy");
  set->callback([&line] { line.chosen = [&line] { return set_verb(line.global, line.set); }; });
  auto* pause = add_pause(app, line, "pause",
                          "make the limited calls of a job wait until it is resumed", pause_verb);
  pause->add_option("--for", line.pause.how_long, "resume it after this time (needs a daemon)")
      ->type_name("TIME");
  pause->footer("  sluice pause hydro\n  sluice pause ann@hydro --for 10m");
  add_pause(app, line, "resume", "end a pause", resume_verb);
}

auto const seconds_check = number_check(0.1, 86400.0);

/// How often a verb that watches shows something, and for how long.
template <class Options>
void add_pace(CLI::App& verb, Options& options) {
  verb.add_option("-n", options.count, "stop after COUNT updates")
      ->type_name("COUNT")
      ->check(number_check(0l, 1'000'000'000l));
  verb.add_option("-i", options.interval_s, "update every SEC seconds (1)")
      ->type_name("SEC")
      ->check(seconds_check);
}

void add_watching(CLI::App& app, command_line& line) {
  auto* jobs = app.add_subcommand("jobs", "list the jobs of a daemon, and those without one");
  jobs->footer("  sluice jobs\n  sluice --json --run-dir /run/sluice jobs");
  jobs->callback([&line] { line.chosen = [&line] { return jobs_verb(line.global); }; });

  auto* top = app.add_subcommand("top", "watch what jobs want, are granted and use");
  top->add_flag("-b,--batch", line.top.batch,
                "print instead of drawing; the default without a "
                "terminal");
  add_pace(*top, line.top);
  top->add_option("--sort", line.top.sort,
                  "waiting, served, grant, demand, escaped, job, user, class")
      ->type_name("ORDER");
  top->add_option("--filter", line.top.filter, "a text, or job= user= class= supply= node=")
      ->type_name("TEXT");
  top->add_flag("--nodes", line.top.nodes, "nodes instead of jobs");
  top->footer(
      "With --json one update is printed, or one per line with --batch or -n. On a terminal q\n"
      "quits and ? lists the other keys.\n\n"
      "  sluice top\n"
      "  sluice top --batch -n 5 -i 2 --sort served\n"
      "  sluice --json top | jq .supplies");
  top->callback([&line] { line.chosen = [&line] { return top_verb(line.global, line.top); }; });

  auto* stat = app.add_subcommand("stat", "show what a job does");
  stat->add_option("-i", line.stat.interval_s, "update every SEC seconds, with rates")
      ->type_name("SEC")
      ->check(seconds_check);
  stat->add_option("JOB", line.stat.job, "name of the job")->required();
  stat->footer("  sluice stat hydro\n  sluice stat -i 1 hydro");
  stat->callback([&line] { line.chosen = [&line] { return stat_verb(line.global, line.stat); }; });
}

void add_order(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("order", "show which writes are durable, and the journal");
  verb->add_option("JOB", line.order.job, "only this job, in full");
  verb->add_flag("--watch", line.order.watch, "keep updating");
  add_pace(*verb, line.order);
  verb->footer(
      "open: written and not synced; the file has it, but a power cut may lose it.\n"
      "closed: an fsync waits for it. durable: in the journal; fsync has returned, and the\n"
      "file itself is made safe within seconds. Bytes are those of whole pages.\n\n"
      "  sluice order\n"
      "  sluice order hydro --watch\n"
      "  sluice --json order | jq .journals");
  verb->callback(
      [&line] { line.chosen = [&line] { return order_verb(line.global, line.order); }; });
}

void add_file_verb(CLI::App& app, command_line& line, std::string const& name,
                   std::string const& help, std::string const& examples,
                   int (*action)(global_options const&, std::string const&)) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("FILE", line.file)->required();
  verb->footer(examples);
  verb->callback([&line, action] {
    line.chosen = [&line, action] { return action(line.global, line.file); };
  });
}

/// Of the versions of a policy. Empty: it is one.
std::string version_number(std::string const& word) {
  long number = 0;
  if (to_number(word, number) && number > 0) return {};
  return fmt::format(
      "\"{}\" is not a version number as `sluice policy log` shows; to compare a file: sluice "
      "policy apply FILE --dry-run",
      word);
}

void add_versions(CLI::App& policy, command_line& line) {
  auto* log = policy.add_subcommand("log", "list the policies that a running daemon had");
  log->footer("  sluice policy log\n  sluice --json policy log | jq '.versions[0]'");
  log->callback([&line] { line.chosen = [&line] { return policy_log(line.global); }; });

  auto* diff = policy.add_subcommand("diff", "show what changed between two of them");
  diff->add_option("FROM", line.version.from, "a version (the one before that in force)")
      ->check(version_number);
  diff->add_option("TO", line.version.to, "a version (the one in force)")->check(version_number);
  diff->footer("  sluice policy diff\n  sluice policy diff 3 5");
  diff->callback(
      [&line] { line.chosen = [&line] { return policy_diff(line.global, line.version); }; });

  auto* rollback = policy.add_subcommand("rollback", "load one of them again");
  rollback->add_option("VERSION", line.version.from, "(the one before that in force)")
      ->check(version_number);
  rollback->add_flag("--dry-run", line.version.dry_run, "only show what would change");
  rollback->footer("  sluice policy rollback --dry-run\n  sluice policy rollback 3");
  rollback->callback(
      [&line] { line.chosen = [&line] { return policy_rollback(line.global, line.version); }; });
}

void add_policy(CLI::App& app, command_line& line) {
  auto* policy = app.add_subcommand("policy", "look at a policy file, or at a daemon's policy");
  policy->require_subcommand(1);
  add_file_verb(*policy, line, "check", "explain a policy in words, or show its errors",
                "  sluice policy check site.json", policy_check);
  add_file_verb(*policy, line, "show", "print a policy with all units resolved, as JSON",
                "  sluice policy show site.json", policy_show);
  auto* apply = policy->add_subcommand("apply", "give a running daemon this policy");
  apply->add_option("FILE", line.apply.file)->required();
  apply->add_flag("--dry-run", line.apply.dry_run, "only show what would change");
  apply->footer("  sluice policy apply site.json --dry-run\n  sluice policy apply site.json");
  apply->callback(
      [&line] { line.chosen = [&line] { return policy_apply(line.global, line.apply); }; });
  auto* get = policy->add_subcommand("get", "print the policy of a running daemon");
  get->footer("  sluice policy get >site.json");
  get->callback([&line] { line.chosen = [&line] { return policy_get(line.global); }; });
  add_versions(*policy, line);
  for (auto* verb : policy->get_subcommands({})) verb->fallthrough();
}

void add_looking(CLI::App& app, command_line& line) {
  auto* explain = app.add_subcommand(
      "explain", "show which limits a call meets, or why a job or process waits");
  add_limit_options(*explain, line.explain.limits);
  explain->add_option("--job", line.explain.job, "explain the grant of this job")->type_name("JOB");
  explain->add_option("WORDS", line.explain.words, "PID, or CALL PATH")->expected(1, 2);
  explain->footer(
      "  sluice explain --job hydro\n"
      "  sluice explain 4711\n"
      "  sluice explain --policy site.json --class bronze open /scratch/data");
  explain->callback(
      [&line] { line.chosen = [&line] { return explain_verb(line.global, line.explain); }; });
  add_file_verb(
      app, line, "doctor",
      "tell whether a program can be limited, or fsync in a directory go through a journal",
      "  sluice doctor ./app\n  sluice doctor /scratch/", doctor_verb);
}

/// Verbs that another program does, which reads the words after them itself.
void add_forwarded(CLI::App& app, command_line& line) {
  for (forwarded_verb const& row : forwarded_verbs) {
    auto* verb = app.add_subcommand(row.name, row.help);
    verb->footer(fmt::format("  sluice {} --help", row.name));
    verb->callback([&line, &row] {
      line.chosen = [&line, &row] { return forward_verb(line.global, row, line.forwarded); };
    });
  }
}

void describe_app(CLI::App& app, command_line& line) {
  app.name("sluice");
  app.set_version_flag("--version", std::string("sluice ") + version);
  take_common_options(app, line.global);
  show_option(app, "--run-dir", "directory of the daemon, or of jobs without a daemon");
  show_option(app, "--json", "print JSON");
  show_option(app, "--verbose", "print what is done");
  show_option(app, "--no-daemon", "act as if no daemon were running");
  app.require_subcommand(1);
  app.fallthrough();
  add_run(app, line);
  add_watching(app, line);
  add_control(app, line);
  add_policy(app, line);
  add_order(app, line);
  add_looking(app, line);
  add_forwarded(app, line);
  app.add_subcommand("help", "show the help of a verb, or list the verbs");
  app.add_subcommand("version", "print the version");
  for (auto* verb : app.get_subcommands({})) verb->fallthrough();
}

/// Whether the next word is the value of this one: an option before the verb, or one of `run`.
bool takes_value(CLI::App const& app, std::string const& word) {
  for (CLI::App const* at : {&app, static_cast<CLI::App const*>(app.get_subcommand("run"))})
    if (auto const* option = at->get_option_no_throw(word); option != nullptr)
      return option->get_items_expected_min() > 0;
  return false;
}

bool is_forwarded(std::string const& word) {
  return std::any_of(std::begin(forwarded_verbs), std::end(forwarded_verbs),
                     [&](forwarded_verb const& row) { return word == row.name; });
}

/// `sluice run … [--] PROGRAM …`: from PROGRAM on, nothing is an option of ours. After a verb of
/// another program nothing is.
void split_command(CLI::App const& app, std::vector<std::string>& words, command_line& line) {
  bool run = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (run && words[i] == "--") {
      line.run.command.assign(words.begin() + std::ptrdiff_t(i) + 1, words.end());
      words.resize(i);
    } else if (words[i].starts_with("-")) {
      if (takes_value(app, words[i])) ++i;
    } else if (run) {
      line.run.command.assign(words.begin() + std::ptrdiff_t(i), words.end());
      words.resize(i);
    } else if (words[i] == "run") {
      run = true;
    } else if (is_forwarded(words[i])) {
      line.forwarded.assign(words.begin() + std::ptrdiff_t(i) + 1, words.end());
      words.resize(i + 1);
    } else {
      return;  // another verb
    }
  }
}

/// The first word that is none of our options must be a verb.
void require_verb(CLI::App const& app, std::vector<std::string> const& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("-")) {
      if (takes_value(app, words[i])) ++i;
      continue;
    }
    std::vector<std::string> verbs;
    for (auto const* verb : app.get_subcommands([](CLI::App const*) { return true; }))
      verbs.push_back(verb->get_name());
    if (std::find(verbs.begin(), verbs.end(), words[i]) == verbs.end())
      throw usage_error(fmt::format("there is no verb \"{}\"{} (sluice --help lists them)",
                                    words[i], did_you_mean(words[i], verbs)));
    return;
  }
}

/// `sluice help run` is `sluice run --help`, and `sluice version` is `sluice --version`.
void turn_into_options(CLI::App const& app, std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("-")) {
      if (takes_value(app, words[i])) ++i;
      continue;
    }
    if (words[i] == "version") words[i] = "--version";
    if (words[i] != "help") return;
    words.erase(words.begin() + std::ptrdiff_t(i));
    words.push_back("--help");
    return;
  }
}

/// `sluice`, and the verb that was found before something was wrong.
std::string said_so_far(CLI::App const& app) {
  auto const verbs = app.get_subcommands();
  return verbs.empty() ? "sluice" : "sluice " + verbs.front()->get_name();
}

int parse_and_do(int argc, char** argv) {
  CLI::App app("sluice meters the file I/O of jobs that share a file system.");
  command_line line;
  describe_app(app, line);
  std::vector<std::string> words(argv + 1, argv + argc);
  turn_into_options(app, words);
  split_command(app, words, line);
  require_verb(app, words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} (see {} --help)", e.what(), said_so_far(app)));
  }
  return line.chosen();
}

}  // namespace

}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::install_guard();  // whose segment it looks at may cut it short
  return sluice::guarded("sluice", [&] { return sluice::cli::parse_and_do(argc, argv); });
}
