// SPDX-License-Identifier: Apache-2.0
// sluice-trace: looks at traces, makes them from what other tools wrote, or from parameters.
#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/common_options.h"
#include "base/error.h"
#include "base/program.h"
#include "commands/trace/convert.h"
#include "commands/trace/generate.h"
#include "commands/trace/info.h"
#include "core/units.h"

namespace sluice::trace {

namespace {

struct command_line {
  common_options common;
  std::string file;
  files from;
  std::string output = "-";
  bool long_rows = false, iolog = false;
  std::string request = "128KiB";
  std::string format, interval;
  convert_options convert;
  std::string preset;
  given values;
  std::function<void()> chosen;
};

spark spark_for_output() {
  if (isatty(STDOUT_FILENO) != 1) return spark::none;
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? spark::unicode : spark::ascii;
}

void show_info(command_line const& line) {
  trace const t = read(line.file);
  fmt::print("{}", line.common.json ? info_json(t, line.file)
                                    : info_table(t, line.file, spark_for_output()));
}

double request_bytes(command_line const& line) {
  auto const amount = core::parse_amount(line.request);
  if (!amount.ok() || amount.value.units < 1 || amount.value.units > (1ull << 30))
    throw usage_error(
        fmt::format("--io-size: \"{}\"; write a size from 1 to 1GiB, like 128KiB", line.request));
  return static_cast<double>(amount.value.units);
}

void write_out(trace const& t, command_line const& line) {
  if (line.iolog)
    write_iolog(t, line.output, request_bytes(line));
  else
    write(t, line.output, line.long_rows ? form::long_rows : form::wide);
  if (line.common.json && line.output != "-") fmt::print("{}", info_json(t, line.output));
}

void convert_files(command_line& line) {
  if (!line.interval.empty()) {
    auto const interval = parse_interval(line.interval);
    if (!interval)
      throw usage_error(
          fmt::format("--interval: \"{}\"; write a time like 1s or 100ms", line.interval));
    line.convert.interval_s = *interval;
  }
  auto const& format =
      line.format.empty() ? detect_format(line.from[0]) : format_named(line.format);
  write_out(convert(format, line.from, line.convert), line);
}

void generate_one(command_line& line) { write_out(generate(line.preset, line.values), line); }

void add_output(CLI::App& verb, command_line& line) {
  verb.add_option("-o,--output", line.output, "the file; - is standard output, the default")
      ->type_name("FILE");
  verb.add_flag("--long", line.long_rows, "rows of one count: time_s,op,count");
  verb.add_flag("--iolog", line.iolog, "reads and writes as fio's iolog, version 3");
  verb.add_option("--io-size", line.request, "size of one request of the iolog (128KiB)")
      ->type_name("SIZE");
}

std::string formats_text() {
  std::string text = "Formats (--from), else found from the content:\n";
  for (auto const& row : format_table)
    text += fmt::format("  {:<8} {}{}\n", row.name, row.sentence,
                        row.jobs_by.empty() ? "" : fmt::format("; --jobs-by {}", row.jobs_by));
  return text;
}

void add_info(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("info", "show a trace: totals, means, peaks");
  verb->add_option("FILE", line.file, "a trace; - is standard input")->required();
  verb->footer("  sluice trace info traces/abci-like.csv\n  sluice trace info --json app.csv");
  verb->callback([&line] { line.chosen = [&line] { show_info(line); }; });
}

void add_convert(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("convert", "make a trace from files of other tools");
  verb->add_option("FILES", line.from, "one file or several; - is standard input")->required();
  verb->add_option("--from", line.format, "the format of the files")->type_name("FORMAT");
  verb->add_option("--interval", line.interval, "length of an interval (1s, or that of the files)")
      ->type_name("TIME");
  verb->add_option("--job", line.convert.job, "put everything into this job")->type_name("NAME");
  verb->add_option("--jobs-by", line.convert.jobs_by, "make a job of each: file, or see below")
      ->type_name("WHAT");
  verb->add_option("--below", line.convert.below, "only files below this directory")
      ->type_name("DIR");
  verb->add_flag("--unordered", line.convert.unordered, "lines may come in any order of time");
  add_output(*verb, line);
  verb->footer(formats_text() +
               "\n  strace -f -ttt -T -y -o app.strace ./app\n"
               "  sluice trace convert app.strace -o app.csv --below /scratch\n"
               "  sluice trace convert --jobs-by job snapshot-* -o month.csv");
  verb->callback([&line] { line.chosen = [&line] { convert_files(line); }; });
}

void add_generate(CLI::App& app, command_line& line) {
  auto* verb = app.add_subcommand("generate", "make a trace from parameters");
  verb->add_option("PRESET", line.preset, "where the parameters begin");
  for (auto const& row : parameter_table)
    verb->add_option_function<std::string>(
            fmt::format("--{}", row.name),
            [&line, name = std::string(row.name)](std::string const& value) {
              line.values[name] = value;
            },
            fmt::format("{}{}", row.help, row.value.empty() ? "" : fmt::format(" ({})", row.value)))
        ->type_name(std::string(row.hint));
  add_output(*verb, line);
  std::string presets = "Presets:\n";
  for (auto const& row : preset_table) presets += fmt::format("  {}\n", row.title);
  verb->footer(presets +
               "\n  sluice trace generate abci-like --length 30d --seed 7 -o month.csv\n"
               "  sluice trace generate --mix open=1,close=1 --mean 500/s --peak 2k/s -o a.csv");
  verb->callback([&line] { line.chosen = [&line] { generate_one(line); }; });
}

int parse_and_do(int argc, char** argv) {
  CLI::App app("sluice trace shows, converts and makes traces of file operations.");
  command_line line;
  app.name("sluice trace");
  take_common_options(app, line.common);
  show_option(app, "--json", "print JSON");
  app.require_subcommand(1);
  app.fallthrough();
  add_info(app, line);
  add_convert(app, line);
  add_generate(app, line);
  app.footer(
      "  sluice trace info traces/recorded.csv\n"
      "  sluice trace convert app.strace --below /scratch -o app.csv\n"
      "  sluice trace generate checkpoint --every 5min -o checkpoint.csv");
  for (auto* verb : app.get_subcommands({})) verb->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} (see sluice trace --help)", e.what()));
  }
  line.chosen();
  return 0;
}

}  // namespace

}  // namespace sluice::trace

int main(int argc, char** argv) {
  return sluice::guarded("sluice", [&] { return sluice::trace::parse_and_do(argc, argv); });
}
