// SPDX-License-Identifier: Apache-2.0
// Where sbatch knows --io-class, that is used. Where it does not, the class travels in the job's
// environment and TaskProlog asks the daemon for it, so `--export` must let it through.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/on_stderr.h"
#include "commands/slurm/hook.h"
#include "local/local.h"

namespace sluice::slurm {

namespace {

constexpr char const* submit_usage =
    "usage: sluice submit --class NAME [OPTIONS] [SBATCH OPTIONS] SCRIPT [ARGUMENTS]\n\n"
    "Submit a batch job with a QoS class. The options below come first; the rest is for sbatch.\n\n"
    "Options:\n"
    "  --class NAME      the QoS class\n"
    "  --limit SPEC      a further limit on each node, besides the class\n"
    "  --run-dir DIR     directory of the daemon that knows the classes (/run/sluice)\n"
    "  --no-daemon       ask no daemon here; the node checks the class\n"
    "  --verbose         the option of sbatch\n"
    "  --dry-run         print the command instead of executing it\n"
    "  --help            print this help\n\n"
    "  sluice submit --class silver -N 4 job.sh\n"
    "  sluice submit --class silver --limit open=500/s --time 1:00:00 job.sh\n";
constexpr int submit_ask_ms = 1000;

struct submission {
  std::string qos_class, limit, run_dir = "/run/sluice";
  bool is_dry = false, is_help = false, is_verbose = false, asks_daemon = true;
  words rest;  // sbatch's
};

/// Takes `--name VALUE` or `--name=VALUE`; false when `at` is another option.
bool take(words const& all, std::size_t& at, std::string const& name, std::string& to) {
  std::string const& word = all[at];
  if (word.starts_with(name + "=")) {
    to = word.substr(name.size() + 1);
  } else if (word == name) {
    if (at + 1 == all.size()) throw usage_error(fmt::format("{} needs a value", name));
    to = all[++at];
  } else {
    return false;
  }
  if (to.empty()) throw usage_error(fmt::format("{} needs a value", name));
  return true;
}

submission read_submission(words const& all) {
  submission r;
  std::size_t at = 0;
  for (; at < all.size(); ++at) {
    if (all[at] == "--help" || all[at] == "-h")
      r.is_help = true;
    else if (all[at] == "--dry-run")
      r.is_dry = true;
    else if (all[at] == "--verbose")
      r.is_verbose = true;
    else if (all[at] == "--no-daemon")
      r.asks_daemon = false;
    else if (all[at] == "--json")
      throw usage_error("submit: --json: sbatch prints none; its --parsable is for scripts");
    else if (!take(all, at, "--class", r.qos_class) && !take(all, at, "--limit", r.limit) &&
             !take(all, at, "--run-dir", r.run_dir))
      break;
  }
  r.rest.assign(all.begin() + static_cast<std::ptrdiff_t>(std::min(at, all.size())), all.end());
  return r;
}

bool has_plugin() {
  std::unique_ptr<FILE, int (*)(FILE*)> const out(popen("sbatch --help 2>/dev/null", "re"), pclose);
  if (!out) return false;
  std::string text;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, out.get())) != 0;)
    text.append(part, got);
  return text.find("--io-class") != std::string::npos;
}

/// As the plugin does it: a daemon of this host knows the policy; without one the node decides.
void check(submission const& r) {
  nlohmann::json question = {{"verb", "classes"}, {"class", r.qos_class}};
  if (!r.limit.empty()) question["limit"] = r.limit;
  try {
    local::ask(r.run_dir + "/sluiced.sock", question, submit_ask_ms);
  } catch (error const& e) {
    if (e.status() == exit_usage) throw;
    on_stderr("sluice: class {} is not checked here: {}\n", r.qos_class, e.what());
  }
}

/// What the script itself says of --export.
std::string export_of_script(words const& rest) {
  std::error_code failed;
  auto const script = std::find_if(rest.begin(), rest.end(), [&](std::string const& word) {
    return std::filesystem::is_regular_file(word, failed);
  });
  if (script == rest.end()) return {};
  std::ifstream in(*script);
  for (std::string line; std::getline(in, line) && (line.empty() || line[0] == '#');)
    if (auto const at = line.find("--export="); line.starts_with("#SBATCH") && at != line.npos)
      return line.substr(at + 9, line.find_first_of(" \t", at) - at - 9);
  return {};
}

/// An --export that lets the class through, where there is one that would not.
words exported(words rest, std::string const& variables) {
  auto const through = [&](std::string const& value) {
    return value == "NONE" || value == "NIL" ? variables : value + "," + variables;
  };
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i].starts_with("--export=")) {
      rest[i] = "--export=" + through(rest[i].substr(9));
      return rest;
    }
    if (rest[i] == "--export" && i + 1 < rest.size()) {
      rest[i + 1] = through(rest[i + 1]);
      return rest;
    }
  }
  std::string const inside = export_of_script(rest);
  if (!inside.empty()) rest.insert(rest.begin(), "--export=" + through(inside));
  return rest;
}

words command_of(submission const& r) {
  words command = {"sbatch"};
  if (r.is_verbose) command.emplace_back("--verbose");
  if (has_plugin()) {
    command.push_back("--io-class=" + r.qos_class);
    if (!r.limit.empty()) command.push_back("--io-limit=" + r.limit);
    command.insert(command.end(), r.rest.begin(), r.rest.end());
    return command;
  }
  if (!r.limit.empty())
    throw usage_error("--limit needs the Slurm plugin of sluice, which sbatch here has not loaded");
  if (r.asks_daemon) check(r);
  setenv("SLUICE_CLASS", r.qos_class.c_str(), 1);
  words const rest = exported(r.rest, "SLUICE_CLASS=" + r.qos_class);
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

}  // namespace

int submit(words const& arguments) {
  submission const r = read_submission(arguments);
  if (r.is_help) {
    fmt::print("{}", submit_usage);
    return 0;
  }
  if (r.qos_class.empty()) throw usage_error("submit: which --class? (sluice submit --help)");
  words const command = command_of(r);
  if (r.is_dry) {
    for (auto const& word : command) fmt::print("{}{}", &word == &command[0] ? "" : " ", word);
    fmt::print("\n");
    return 0;
  }
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (auto const& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw sluice_error(fmt::format("sbatch cannot be executed: {}", std::strerror(errno)));
}

}  // namespace sluice::slurm
