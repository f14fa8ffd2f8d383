// SPDX-License-Identifier: Apache-2.0
// sluice policy apply and get: the policy of a running daemon.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/report.h"
#include "policy/error.h"

namespace sluice::cli {

namespace {

std::string read_file(std::string const& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  return text.str();
}

/// Prints a list of sentences of the answer; how many there were.
std::size_t print_lines(std::FILE* to, std::string const& before, json const& answer,
                        char const* key) {
  auto const lines = answer.find(key);
  if (lines == answer.end() || !lines->is_array()) return 0;
  for (auto const& line : *lines)
    fmt::print(to, "{}{}\n", before, line.is_string() ? line.get<std::string>() : line.dump());
  return lines->size();
}

}  // namespace

int policy_apply(global_options const& global, apply_options const& options) {
  std::string const text = read_file(options.file);
  daemon_at const daemon = need_daemon(global);
  json const answer = ask(daemon, {{"verb", "policy-apply"},
                                   {"text", text},
                                   {"name", options.file},
                                   {"dry_run", options.dry_run}});
  if (global.json) {
    fmt::print("{}", dump(answer));
    return 0;
  }
  if (print_lines(stdout, "", answer, "changes") == 0) fmt::print("nothing changes\n");
  print_lines(stderr, fmt::format("sluice: {}: warning: ", options.file), answer, "warnings");
  if (options.dry_run) fmt::print("(not applied: --dry-run)\n");
  return 0;
}

int policy_get(global_options const& global) {
  json const answer = ask(need_daemon(global), {{"verb", "policy"}});
  if (global.json) {
    fmt::print("{}", dump(answer));
    return 0;
  }
  std::string const text = answer.value("text", "");
  if (text.empty()) throw error(1, "the daemon has no policy");
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace sluice::cli
