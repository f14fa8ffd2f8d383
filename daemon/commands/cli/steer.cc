// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/steer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/printable.h"
#include "commands/cli/daemon.h"
#include "commands/cli/report.h"

namespace sluice::cli {

namespace {

nlohmann::json seconds_of(std::string const& how_long) {
  if (how_long.empty()) return nullptr;
  std::int64_t const ns = parse_duration(how_long, "--for");
  if (ns < 1'000'000'000) throw usage_error("--for: at least one second");
  return (ns + 999'999'999) / 1'000'000'000;
}

/// A word of the answer, whatever type it has.
std::string word(json const& answer, char const* key) {
  auto const at = answer.find(key);
  if (at == answer.end() || at->is_null()) return {};
  return at->is_string() ? at->get<std::string>() : at->dump();
}

/// `until` may be a text or seconds since 1970.
std::string until_words(json const& answer) {
  auto const at = answer.find("until");
  if (at == answer.end() || at->is_null()) return {};
  if (!at->is_number()) return ", until " + word(answer, "until");
  return ", " + until_text(at->get<double>(), unix_exact_s());
}

void tell(std::string const& verb, std::string const& job, std::string const& assignment,
          json const& answer) {
  if (verb != "set") {
    fmt::print("{} is {}{}\n", job, word(answer, "state"), until_words(answer));
    return;
  }
  std::string const was = word(answer, "was");
  std::string now = word(answer, "now");
  if (now.find('=') == std::string::npos)
    now = assignment.substr(0, assignment.find('=') + 1) + (now.empty() ? "?" : now);
  std::string until = until_words(answer);
  bool const is_withdrawn = now.ends_with("=policy");
  if (!is_withdrawn) until += until.empty() ? ", until it is changed" : ", then as the policy says";
  fmt::print("{} {}{}{}\n", job, now, was.empty() ? "" : fmt::format(" (was {})", was), until);
}

}  // namespace

std::optional<int> steer_by_daemon(global_options const& global, std::string const& verb,
                                   std::string const& job, std::string const& assignment,
                                   std::string const& how_long) {
  nlohmann::json request = {{"verb", verb}, {"job", job}, {"for_s", seconds_of(how_long)}};
  if (verb == "set") request["assignment"] = assignment;
  auto const daemon = daemon_of_job(global, job);
  if (!daemon) {
    if (!how_long.empty())
      throw usage_error("--for: job " + job +
                        " runs without a daemon, and nobody else could take it back");
    return std::nullopt;
  }
  json const answer = ask(*daemon, request);
  if (global.json)
    fmt::print("{}", dump(answer));
  else
    tell(verb, job, assignment, answer);
  if (auto const all = answer.find("warnings"); all != answer.end() && all->is_array())
    for (auto const& line : *all)
      if (line.is_string()) on_stderr("sluice: warning: {}\n", printable(line.get<std::string>()));
  return 0;
}

}  // namespace sluice::cli
