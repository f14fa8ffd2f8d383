// SPDX-License-Identifier: Apache-2.0
// sluice report: result files, or the history of a daemon, as a page, a text or a summary.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/common_options.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/program.h"
#include "commands/report/ask.h"
#include "commands/report/page.h"
#include "commands/report/text.h"

namespace sluice::report {

namespace {

constexpr std::size_t most_files = 8;

constexpr char const* examples =
    "Examples:\n"
    "  sluice run --report run.json --limit open=1000/s -- ./app\n"
    "  sluice report run.json -o run.html      a page that needs no network\n"
    "  sluice report run.json                  the same in words, on a terminal\n"
    "  sluice report before.json after.json -o both.html\n"
    "  sluice report --job hydro -o hydro.html    the last hour, from the daemon\n"
    "  sluice report --dashboard               the address of the live page";

struct options {
  std::vector<std::string> files;
  std::string out = "-";
  std::string job, last = "1h";
  common_options common;
  bool history = false, dashboard = false, text = false, page = false;
};

unsigned terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
    return std::min<unsigned>(size.ws_col, 160);
  return 100;
}

std::vector<result> gather(options const& o) {
  if (o.history) {
    question q;
    q.run_dir = o.common.run_dir;
    q.job = o.job;
    q.uid = geteuid();
    q.last_s = static_cast<double>(parse_duration(o.last, "--last")) / 1e9;
    if (!(q.last_s >= 1 && q.last_s <= 3600))
      throw usage_error("--last: a daemon remembers an hour; give 1s to 1h");
    return {ask_history(q)};
  }
  std::vector<result> out;
  for (auto const& file : o.files) out.push_back(read_result(file));
  return out;
}

void check(options const& o) {
  if (o.history && !o.files.empty()) throw usage_error("give either files, or --job, or --history");
  if (!o.history && o.files.empty())
    throw usage_error("give a result file (of `sluice run --report`), or --job NAME");
  if (o.files.size() > most_files)
    throw usage_error(fmt::format("at most {} files fit side by side", most_files));
  if (o.text + o.common.json + o.page > 1)
    throw usage_error("give only one of --text, --json and --html");
  if (o.out == "-") return;
  std::error_code failed;
  for (auto const& file : o.files)
    if (std::filesystem::equivalent(file, o.out, failed))
      throw usage_error(fmt::format("-o {}: that is the input", o.out));
}

int parse_and_do(int argc, char** argv) {
  CLI::App app("Shows what a run, a replay, a simulation or the last hour of a daemon did.",
               "sluice report");
  options o;
  app.add_option("FILE", o.files,
                 "result files; - is standard input; several are shown side by side");
  app.add_option("-o,--output", o.out, "output file (-); a page unless --text or --json is given")
      ->type_name("FILE");
  app.add_flag("--text", o.text, "text and small tables (the default without -o)");
  app.add_flag("--html", o.page, "a page (the default with -o)");
  app.add_option("--job", o.job, "a job's last hour, from the daemon")->type_name("NAME");
  app.add_flag("--history", o.history, "the last hour of all jobs that you may see");
  app.add_flag("--dashboard", o.dashboard,
               "print the address of the daemon's page with your key, and end");
  app.add_option("--last", o.last, "only this last part of it (1h; single seconds up to 10m)")
      ->type_name("TIME");
  take_common_options(app, o.common);
  show_option(app, "--json", "the summary as JSON");
  show_option(app, "--run-dir", "the daemon's directory");
  app.footer(examples);
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} (see sluice report --help)", e.what()));
  }
  o.history = o.history || !o.job.empty();
  if (o.common.no_daemon && (o.history || o.dashboard))
    throw usage_error("--no-daemon: --job, --history and --dashboard need a daemon");
  if (o.dashboard) {
    fmt::print("{}\n", ask_dashboard(o.common.run_dir));
    return 0;
  }
  check(o);
  auto const results = gather(o);
  bool const page = o.page || (!o.text && !o.common.json && o.out != "-");
  output_file to(o.out);
  to.stream() << (page            ? page_of(results, make_nonce())
                  : o.common.json ? summary_of(results)
                                  : text_of(results, o.out == "-" ? terminal_columns() : 100));
  to.commit();
  return 0;
}

}  // namespace

}  // namespace sluice::report

int main(int argc, char** argv) {
  return sluice::guarded("sluice report", [&] { return sluice::report::parse_and_do(argc, argv); });
}
