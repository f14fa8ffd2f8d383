// SPDX-License-Identifier: Apache-2.0
// sluice hook: what the plugin does, for sites without it and for other schedulers. prolog and
// epilog run as root on each node of the job, task-prolog as its user before each task.
#include "commands/slurm/hook.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/number.h"
#include "base/on_stderr.h"
#include "base/whole_file.h"
#include "local/local.h"

namespace sluice::slurm {

namespace {

using nlohmann::json;

constexpr int hook_ask_ms = 45;  // a daemon that hangs delays nobody for long
constexpr char const* hook_usage =
    "usage: sluice hook WHICH [OPTIONS]\n\n"
    "For the scripts of a batch scheduler on a node. Options that are not given come from\n"
    "Slurm's environment. The status is 0 except for wrong usage: no job fails because of us.\n\n"
    "Subcommands:\n"
    "  prolog       announce a job, as root\n"
    "  epilog       end a job, as root\n"
    "  task-prolog  print `export LD_PRELOAD=...` for TaskProlog, as the job's user\n\n"
    "Options:\n"
    "  --job ID        the job (SLURM_JOB_ID)\n"
    "  --uid UID       its user (SLURM_JOB_UID); for prolog\n"
    "  --class NAME    its QoS class (SLUICE_CLASS for task-prolog)\n"
    "  --nodes N       the number of its nodes; for prolog\n"
    "  --account A     its account (SLURM_JOB_ACCOUNT); for prolog\n"
    "  --run-dir DIR   directory of the node's daemon (/run/sluice)\n";

struct values {
  std::map<std::string, std::string> given;

  std::string at(std::string const& option, char const* variable = nullptr) const {
    if (auto const found = given.find(option); found != given.end()) return found->second;
    char const* const value = variable != nullptr ? std::getenv(variable) : nullptr;
    return value != nullptr ? value : "";
  }
  std::string run_dir() const {
    std::string const named = at("--run-dir");
    return named.empty() ? "/run/sluice" : named;
  }
  std::string job() const {
    std::string const id = at("--job", "SLURM_JOB_ID");
    if (id.empty() || id.find('/') != std::string::npos || id[0] == '.')
      throw usage_error("hook: which --job?");
    return id;
  }
};

values read(words const& arguments) {
  static constexpr std::string_view known[] = {"--job",   "--uid",     "--class",
                                               "--nodes", "--account", "--run-dir"};
  values v;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    bool const is_known =
        std::find(std::begin(known), std::end(known), arguments[i]) != std::end(known);
    if (!is_known || i + 1 == arguments.size())
      throw usage_error(fmt::format("hook: {}: not understood\n{}", arguments[i], hook_usage));
    v.given[arguments[i]] = arguments[i + 1];
  }
  return v;
}

json ask(values const& v, json const& request) {
  return local::ask(v.run_dir() + "/sluiced.sock", request, hook_ask_ms);
}

unsigned number(std::string const& text, char const* what) {
  unsigned value = 0;
  if (!to_number(text, value))
    throw usage_error(fmt::format("hook: {} \"{}\" is no number", what, text));
  return value;
}

/// Complete or not there: the daemon may look at any moment.
void write_announcement(values const& v, json const& text) {
  std::string const dir = v.run_dir() + "/scheduler";
  std::string const path = dir + "/" + v.job();
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST)
    throw sluice_error(fmt::format("{}: {}", dir, std::strerror(errno)));
  if (!replace_file(path, text.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"))
    throw sluice_error(fmt::format("{}: {}", path, std::strerror(errno)));
}

void prolog(values const& v) {
  json text = {{"job", v.job()}, {"uid", number(v.at("--uid", "SLURM_JOB_UID"), "--uid")}};
  if (auto const name = v.at("--class"); !name.empty()) text["class"] = name;
  if (auto const name = v.at("--account", "SLURM_JOB_ACCOUNT"); !name.empty())
    text["account"] = name;
  if (auto const name = v.at("", "SLURM_JOB_NAME"); !name.empty()) text["label"] = name;
  if (auto const count = v.at("--nodes"); !count.empty()) text["nodes"] = number(count, "--nodes");
  write_announcement(v, text);
  json const answer = ask(v, {{"verb", "register"}, {"job", v.job()}});
  if (auto const note = answer.value("note", ""); !note.empty())
    on_stderr("sluice: job {}: {}\n", v.job(), note);
}

void epilog(values const& v) {
  std::string const path = v.run_dir() + "/scheduler/" + v.job();
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    on_stderr("sluice: {}: {}\n", path, std::strerror(errno));
  json const answer = ask(v, {{"verb", "release"}, {"job", v.job()}});
  on_stderr("sluice: {}\n", answer.value("line", ""));
}

/// Nothing but `export` and `print` lines may go to standard output.
void task_prolog(values const& v) {
  json request = {{"verb", "join"}, {"job", v.job()}};
  std::string const wish = v.at("--class", "SLUICE_CLASS");
  if (!wish.empty()) request["class"] = wish;
  json answer;
  try {
    answer = ask(v, request);
  } catch (error const& e) {
    if (e.status() != exit_usage) throw;
    fmt::print("print sluice: {}\n", e.what());
    request.erase("class");
    answer = ask(v, request);
  }
  std::string const library = answer.value("preload", "");
  if (library.empty() || answer.value("class", "").empty()) return;
  char const* const theirs = std::getenv("LD_PRELOAD");
  std::string const rest = theirs != nullptr ? theirs : "";
  if (rest.find(library) != std::string::npos) return;
  fmt::print("export LD_PRELOAD={}{}{}\n", library, rest.empty() ? "" : ":", rest);
}

}  // namespace

int hook(words const& given) {
  // Options before the verb come first; but for --run-dir they mean nothing to a hook.
  words arguments = given;
  std::erase_if(arguments, [](std::string const& word) {
    return word == "--json" || word == "--verbose" || word == "--no-daemon";
  });
  std::size_t const at = arguments.size() > 2 && arguments[0] == "--run-dir" ? 2 : 0;
  std::string const which = at < arguments.size() ? arguments[at] : "";
  bool const asks = std::any_of(arguments.begin(), arguments.end(), [](std::string const& word) {
    return word == "--help" || word == "-h";
  });
  if (asks) {
    fmt::print("{}", hook_usage);
    return 0;
  }
  void (*const does)(values const&) = which == "prolog"        ? prolog
                                      : which == "epilog"      ? epilog
                                      : which == "task-prolog" ? task_prolog
                                                               : nullptr;
  if (does == nullptr) throw usage_error(fmt::format("hook: which one?\n{}", hook_usage));
  arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
  values const v = read(arguments);
  try {
    does(v);
  } catch (error const& e) {
    if (e.status() == exit_usage) throw;
    on_stderr("sluice: {}\n", e.what());  // the job runs without limits
  }
  return 0;
}

}  // namespace sluice::slurm
