// SPDX-License-Identifier: Apache-2.0
// sluice-calibrate: the command lines of `sluice calibrate` and `sluice cost`. What they do is in
// run.cc, show.cc and check.cc.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/common_options.h"
#include "base/error.h"
#include "base/number.h"
#include "base/program.h"
#include "commands/calibrate/options.h"
#include "core/units.h"

namespace sluice::calibrate {

namespace {

constexpr std::size_t most_files = 6;

double budget_of(std::string const& text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = 0;
  if (!to_number(digits, percent) || percent < 0.1 || percent > 100)
    throw usage_error(
        fmt::format("--budget {}: wanted a part of the time, 0.1% to 100%, for example 5%", text));
  return percent / 100;
}

std::uint64_t size_of(std::string const& text) {
  auto const size = core::parse_amount(text);
  constexpr std::uint64_t least = 32 << 20, most = std::uint64_t{1} << 42;
  if (!size.ok() || size.value.units < least || size.value.units > most)
    throw usage_error(fmt::format("--size {}: wanted 32MiB or more, for example 4GiB", text));
  return size.value.units;
}

int parse(CLI::App& app, int argc, char** argv, std::function<int()> const& chosen) {
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} ({} --help tells more)", e.what(), app.get_name()));
  }
  return chosen();
}

int calibrate_verb(int argc, char** argv) {
  CLI::App app("Measures what requests cost on a file system, in virtual IOPs (VOPs).",
               "sluice calibrate");
  calibrate_options o;
  common_options common;
  std::string budget = "100%", size;
  app.add_option("PATH", o.path, "a directory of the file system")->required();
  app.add_option("-o,--output", o.output, "the cost file to write; - is standard output")
      ->type_name("FILE")
      ->required();
  app.add_option("--budget", budget, "do I/O for no more than this part of the time (100%)")
      ->type_name("PERCENT");
  app.add_flag("--short", o.is_short, "half a minute: fewer sizes, shorter looks");
  app.add_option("--size", size, "of the file that is read and written (1GiB, or what fits)")
      ->type_name("BYTES");
  app.add_option("--processes", o.processes, "that do I/O at once (2)")
      ->check(number_check(2u, 64u));
  app.add_option("--only", o.only, "only steps whose name begins so, like read/ or op/; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--restart", o.restart, "begin anew, whatever an interrupted one left");
  app.add_flag("-q,--quiet", o.quiet, "no progress, no summary");
  take_common_options(app, common);
  app.footer(
      "Examples:\n"
      "  sluice calibrate /scratch -o scratch.cost.json\n"
      "  sluice calibrate /scratch -o scratch.cost.json --budget 5%     while others work there\n"
      "  sluice calibrate /scratch -o quick.cost.json --short\n"
      "  sluice cost show scratch.cost.json");
  return parse(app, argc, argv, [&] {
    o.budget = budget_of(budget);
    if (!size.empty()) o.size = size_of(size);
    return calibrate(o);
  });
}

int cost_verb(int argc, char** argv) {
  CLI::App app("Looks at cost files.", "sluice cost");
  common_options common;
  show_options shown;
  check_options checked;
  std::function<int()> chosen;
  app.require_subcommand(1);
  take_common_options(app, common);
  show_option(app, "--json", "print JSON");
  auto* show_verb =
      app.add_subcommand("show", "print what requests cost, of several files side by side");
  show_verb->add_option("FILE", shown.files, "cost files")->required();
  show_verb->add_option("--html", shown.html, "write a page that needs no network")
      ->type_name("FILE");
  show_verb->footer(
      "  sluice cost show scratch.cost.json\n"
      "  sluice cost show before.json after.json --html costs.html");
  show_verb->callback([&] {
    chosen = [&] {
      if (shown.files.size() > most_files)
        throw usage_error(fmt::format("more than {} files have no room side by side", most_files));
      shown.json = common.json;
      if (shown.json && !shown.html.empty()) throw usage_error("--json and --html: one of them");
      return show(shown);
    };
  });
  auto* check_verb =
      app.add_subcommand("check", "say whether a cost file belongs to a mount and still holds");
  check_verb->add_option("FILE", checked.file, "a cost file")->required();
  check_verb->add_option("PATH", checked.path, "a directory of the file system")->required();
  check_verb->footer(
      "Status: 0 it holds, 1 the device has changed, 2 it is of another mount.\n\n"
      "  sluice cost check scratch.cost.json /scratch");
  check_verb->callback([&] {
    chosen = [&] {
      checked.json = common.json;
      return check(checked);
    };
  });
  for (auto* verb : app.get_subcommands({})) verb->fallthrough();
  return parse(app, argc, argv, [&] { return chosen(); });
}

/// The command says first which of its verbs it is.
int run(int argc, char** argv) {
  std::string_view const verb = argc > 1 ? argv[1] : "";
  argv[1] = argv[0];
  if (verb == "calibrate") return calibrate_verb(argc - 1, argv + 1);
  if (verb == "cost") return cost_verb(argc - 1, argv + 1);
  throw usage_error("this program does sluice calibrate and sluice cost");
}

}  // namespace

}  // namespace sluice::calibrate

int main(int argc, char** argv) {
  std::string const name = argc > 1 ? std::string("sluice ") + argv[1] : "sluice";
  return sluice::guarded(name.c_str(), [&] { return sluice::calibrate::run(argc, argv); });
}
