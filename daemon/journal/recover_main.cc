// SPDX-License-Identifier: Apache-2.0
// sluice-recover: the command line of `sluice recover`. What it does is in recover.cc.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/common_options.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/printable.h"
#include "base/program.h"
#include "base/stopped_child.h"
#include "journal/opener.h"
#include "journal/recover.h"

namespace sluice::journal {

namespace {

void print(recovered const& r, recover_options const& o) {
  fmt::print("{}: generation {}, {} records of {} files, {:.1f} MiB\n", printable(o.log),
             r.generation, r.records, r.files, static_cast<double>(r.end - r.head) / (1 << 20));
  if (r.damaged_before != 0)
    fmt::print("  damaged: {} bytes from {} on cannot be read\n", r.damaged_before - r.end, r.end);
  if (r.marked != 0)
    fmt::print("  {} files had an fsync of their own since, and are newer than the journal\n",
               r.marked);
  if (r.home_error != 0)
    fmt::print("  the disk had refused bytes at home ({}): what is there is not believed\n",
               std::strerror(r.home_error));
  for (auto const& one : r.aside)
    fmt::print("  {}{}: {}\n", one.why, o.dry_run ? "" : ", left as it is", printable(one.name));
  if (!r.aside_log.empty())
    fmt::print("  what the journal has of those is in {}\n", printable(r.aside_log));
  if (o.dry_run) {
    fmt::print("  nothing was written (--dry-run)\n");
    return;
  }
  if (r.is_void) {
    fmt::print("  a program had synced all of it at home by itself: nothing replayed\n");
    return;
  }
  if (r.is_running) {
    fmt::print(
        "  this machine has not been restarted since: home files synced, nothing replayed\n");
    return;
  }
  fmt::print("  brought home: {} records, {:.1f} MiB; {} files made, {} records of removed files\n",
             r.done.records, static_cast<double>(r.done.bytes) / (1 << 20), r.done.made,
             r.done.gone);
  for (auto const& name : r.done.kept_names) fmt::print("  left as it is: {}\n", printable(name));
  for (auto const& name : r.done.regrouped)
    fmt::print("  its user is not in its group, and it has another: {}\n", printable(name));
  for (auto const& path : r.done.aside)
    fmt::print("  had a name that was given again, and was put aside: {}\n", printable(path));
}

nlohmann::ordered_json names_of(std::vector<aside_file> const& files) {
  auto rows = nlohmann::ordered_json::array();
  for (auto const& one : files) rows.push_back({{"file", one.name}, {"why", one.why}});
  return rows;
}

void print_json(recovered const& r, recover_options const& o) {
  nlohmann::ordered_json j = {{"version", 1},
                              {"journal", o.log},
                              {"dry_run", o.dry_run},
                              {"generation", r.generation},
                              {"log_bytes", r.end - r.head},
                              {"records", r.records},
                              {"files", r.files},
                              {"foreign", r.foreign},
                              {"set_aside", names_of(r.aside)},
                              {"set_aside_journal", r.aside_log},
                              {"marked", r.marked},
                              {"damaged_bytes", r.damaged_before - (r.damaged_before ? r.end : 0)},
                              {"synced_only", r.is_running},
                              {"void", r.is_void},
                              {"home_error", r.home_error},
                              {"replayed_records", r.done.records},
                              {"replayed_bytes", r.done.bytes},
                              {"made", r.done.made},
                              {"gone", r.done.gone},
                              {"ahead", r.done.ahead},
                              {"aside", r.done.aside},
                              {"kept_names", r.done.kept_names},
                              {"regrouped", r.done.regrouped}};
  fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// A line on a terminal, four times a second.
std::function<void(std::uint64_t, std::uint64_t)> terminal_progress() {
  std::int64_t last_ns = steady_ns();
  return [last_ns](std::uint64_t at, std::uint64_t of) mutable {
    std::int64_t const now_ns = steady_ns();
    if (now_ns - last_ns < 250'000'000) return;
    last_ns = now_ns;
    on_stderr("\r{} of {} MiB\033[K", at >> 20, of >> 20);
  };
}

/// Names of files are in its errors as well.
recovered recovered_or_told(recover_options const& o) {
  try {
    return recover(o);
  } catch (error const& e) {
    throw error(e.status(), printable(e.what()));
  }
}

/// Its owner may stop the process that takes his rights, so root's waits for that one.
int ended(pid_t pid, std::string const& log) {
  stopped_child child;
  for (int status = 0;;) {
    if (waitpid(pid, &status, WUNTRACED) != pid) {
      if (errno != EINTR) throw errno_error("waitpid");
    } else if (WIFSTOPPED(status)) {
      kill(pid, child.signal_for_it());
    } else if (WIFEXITED(status)) {
      return WEXITSTATUS(status);
    } else {
      throw sluice_error(printable(log) +
                         (child.is_given_up()
                              ? ": its user stopped its recovery again and again, and it was "
                                "ended; the journal is kept"
                              : fmt::format(": signal {} ended its recovery; the journal is kept",
                                            WTERMSIG(status))));
    }
  }
}

int bring_home(recover_options o, pid_t parent, bool is_quiet, bool is_json) {
  bool const shows = !is_quiet && isatty(STDERR_FILENO) != 0;
  if (shows) o.progress = terminal_progress();
  auto const files = become_owner(o.log);
  // Not before, for who takes other rights loses that.
  if (parent != 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (parent != 0 && getppid() != parent) return exit_sluice;
  o.files = files.get();
  recovered const r = recovered_or_told(o);
  if (shows) on_stderr("\r\033[K");
  is_json ? print_json(r, o) : print(r, o);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Brings home what a journal holds after a crash. Run it before programs open the files."};
  app.name("sluice recover");
  recover_options o;
  bool quiet = false;
  common_options common;
  app.add_option("JOURNAL", o.log, "the journal, for example /var/lib/sluice-order/UID/own/journal")
      ->required();
  app.add_flag("--dry-run", o.dry_run, "only say what would be done");
  app.add_flag("--keep-home", o.keep_home,
               "leave files that somebody else changed since as they are, and recover the others");
  app.add_flag("--overwrite", o.overwrite,
               "write what the journal has over files that somebody else changed since")
      ->excludes("--keep-home");
  app.add_flag("--set-aside", o.set_aside,
               "leave files as they are that their users keep from being recovered, keep what the "
               "journal has of them in a journal of its own, and recover the others");
  app.add_option("--into", o.into,
                 "bring files whose directory is no more to this one, on the same file system")
      ->type_name("DIR");
  app.add_flag("--replay", o.replay,
               "replay although this machine has not been restarted since the journal was written");
  app.add_flag("--partial", o.partial, "bring home what lies before a damaged part of the journal");
  take_common_options(app, common);
  show_option(app, "--json", "the result as JSON");
  app.add_flag("-q,--quiet", quiet, "no progress");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : (app.exit(e), exit_usage);
  }
  if (geteuid() != 0) return bring_home(std::move(o), 0, quiet, common.json);
  pid_t const parent = getpid(), child = fork();
  if (child < 0) throw errno_error("fork");
  return child == 0 ? bring_home(std::move(o), parent, quiet, common.json) : ended(child, o.log);
}

}  // namespace

}  // namespace sluice::journal

int main(int argc, char** argv) {
  return sluice::guarded("sluice recover", [&] { return sluice::journal::run(argc, argv); });
}
