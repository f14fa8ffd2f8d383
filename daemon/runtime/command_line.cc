// SPDX-License-Identifier: Apache-2.0
#include "runtime/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "policy/text_file.h"
#include "runtime/services.h"

namespace sluice::runtime {

namespace {

constexpr char const* about =
    "Shares the capacity of file systems among jobs: on each node (node), for groups of nodes "
    "(relay), for all (cluster).";

constexpr char const* examples =
    "Examples:\n"
    "  sluiced --role cluster --policy site.json --listen tcp://0.0.0.0:7421 --keys "
    "/etc/sluice/keys-cluster\n"
    "  sluiced --role node --parent tcp://ctl:7421 --keys /etc/sluice/keys\n"
    "  sluiced --role node --policy site.json             one node, no controller above it\n"
    "  sluiced --role node --name n1 --run-dir DIR --parent tcp://127.0.0.1:7421 --plain\n"
    "  sluiced --config /etc/sluice/node.json --check     says what is wrong, and ends\n"
    "  sluiced keys new --dir /etc/sluice/keys n1         see `sluiced keys --help`\n"
    "Every flag is also a key of the configuration file. SIGHUP reads it, the policy and the keys\n"
    "again; when anything is wrong all stays as it was. See sluiced(8), sluice-policy(5).";

/// What was given for one setting, under its own name and under its old one.
using values_of_settings = std::vector<std::vector<std::string>>;

CLI::Option* add_setting(CLI::App& app, setting const& s, std::string const& flag,
                         std::vector<std::string>& values) {
  std::string const help(s.help);
  if (s.is_flag())
    return app.add_flag_callback(
        flag, [&values] { values = {"true"}; }, help);
  auto* option = app.add_option(flag, values, help)->allow_extra_args(false);
  option->type_name(s.is_list() ? "ADDRESS" : std::string(s.type));
  if (!s.is_list()) option->expected(1);
  option->multi_option_policy(s.is_list() ? CLI::MultiOptionPolicy::TakeAll
                                          : CLI::MultiOptionPolicy::Throw);
  return option;
}

/// Old names are taken and not shown.
void add_settings(CLI::App& app, values_of_settings& values, values_of_settings& old) {
  for (std::size_t i = 0; i < settings().size(); ++i) {
    setting const& s = settings()[i];
    add_setting(app, s, flag_of(s), values[i]);
    std::string const was = old_flag_of(s);
    // Not excludes(): the help of the present flag would tell of the old one.
    if (!was.empty()) add_setting(app, s, was, old[i])->group("");
  }
}

void refuse_both(values_of_settings const& values, values_of_settings const& old) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i].empty() && !old[i].empty())
      throw usage_error(
          fmt::format("{} excludes {}", old_flag_of(settings()[i]), flag_of(settings()[i])));
}

void take(command_line& line, values_of_settings const& values, bool are_old) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (auto const& value : values[i]) {
      std::string const was = are_old ? old_flag_of(settings()[i]) : "";
      std::string const flag = are_old ? was : flag_of(settings()[i]);
      line.flags.push_back({i, value, settings()[i].is_flag() ? flag : flag + " " + value, was});
    }
}

/// CLI11 does not know what was meant; we do.
std::string unknown_flag(CLI::App const& app, std::string const& word) {
  std::vector<std::string> known;
  for (auto const* option : app.get_options()) known.push_back(option->get_name());
  std::string const flag = word.substr(0, word.find('='));
  return fmt::format("{}: there is no such {}{}", flag, flag[0] == '-' ? "flag" : "argument",
                     did_you_mean(flag, known));
}

}  // namespace

command_line parse_command_line(int argc, char** argv) {
  command_line line;
  values_of_settings values(settings().size()), old(settings().size());
  CLI::App app(about, "sluiced");
  app.footer(examples);
  app.get_formatter()->column_width(28);
  app.set_version_flag("--version", fmt::format("sluiced {}", version));
  add_settings(app, values, old);
  app.add_option("--config", line.config_file, "JSON file; flags count more")->type_name("FILE");
  app.add_flag("--check", line.check, "read everything, say what is wrong, end");
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() != 0) throw usage_error(e.what());
    line.end = app.exit(e);
    return line;
  }
  if (auto const rest = app.remaining(); !rest.empty())
    throw usage_error(unknown_flag(app, rest.front()));
  refuse_both(values, old);
  take(line, values, false);
  take(line, old, true);
  return line;
}

config read_config(command_line const& line) {
  std::vector<given> file;
  if (!line.config_file.empty())
    file = parse_config(policy::read_text(line.config_file), line.config_file);
  return make_config(file, line.flags);
}

}  // namespace sluice::runtime
