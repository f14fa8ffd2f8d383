// SPDX-License-Identifier: Apache-2.0
// sluice policy apply, get, log, diff and rollback: the policy of a running daemon, and those it
// had.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/daemon.h"
#include "commands/cli/options.h"
#include "commands/cli/report.h"
#include "policy/change.h"
#include "policy/policy.h"
#include "policy/resource.h"

namespace sluice::cli {

namespace {

/// Prints a list of sentences of the answer; how many there were.
std::size_t print_lines(std::FILE* to, std::string const& before, json const& answer,
                        char const* key) {
  auto const lines = answer.find(key);
  if (lines == answer.end() || !lines->is_array()) return 0;
  for (auto const& line : *lines)
    fmt::print(to, "{}{}\n", before, line.is_string() ? line.get<std::string>() : line.dump());
  return lines->size();
}

struct application {
  std::string text, name, from;
  bool dry_run;
};

int apply(global_options const& global, daemon_at const& daemon, application const& a) {
  json request = {
      {"verb", "policy-apply"}, {"text", a.text}, {"name", a.name}, {"dry_run", a.dry_run}};
  if (!a.from.empty()) request["from"] = a.from;
  json const answer = ask(daemon, request);
  if (global.json) {
    fmt::print("{}", dump(answer));
    return 0;
  }
  if (print_lines(stdout, "", answer, "changes") == 0) fmt::print("nothing changes\n");
  print_lines(stderr, fmt::format("sluice: {}: warning: ", a.name), answer, "warnings");
  if (a.dry_run) fmt::print("(not applied: --dry-run)\n");
  return 0;
}

// ---- versions ----

struct version {
  long number = 0;
  std::string text;
};

/// Newest first.
json versions(daemon_at const& daemon) {
  json const answer = ask(daemon, {{"verb", "policy-log"}});
  auto const rows = answer.find("versions");
  return rows != answer.end() && rows->is_array() ? *rows : json::array();
}

/// 0 is the `otherwise`-th newest: 0 that in force, 1 the one before.
version find_version(daemon_at const& daemon, long number, std::size_t otherwise) {
  if (number == 0) {
    json const rows = versions(daemon);
    if (rows.size() <= otherwise)
      throw error(1, rows.empty() ? "the daemon has no policy"
                                  : "the daemon had no other policy: sluice policy log");
    number = rows[otherwise].value("version", 0L);
  }
  json const row = ask(daemon, {{"verb", "policy-log"}, {"version", number}});
  return {number, row.value("text", "")};
}

std::string who_applied(json const& row) {
  auto const by = row.find("by_uid");
  return by == row.end() || by->is_null() ? "" : fmt::format(", uid {}", by->dump());
}

/// What was changed by hand beside the policy: rows with "job", "user" and "override".
json by_hand(daemon_at const& daemon) {
  json rows = json::array();
  json const answer = ask_all(daemon, {{"verb", "jobs"}}, "jobs");
  for (auto const& row : answer.value("jobs", json::array()))
    if (auto const o = row.find("override"); o != row.end() && o->is_object() && !o->empty())
      rows.push_back(
          {{"job", row.value("job", "")}, {"user", row.value("user", "")}, {"override", *o}});
  return rows;
}

/// `until 2026-…`, by the end of one of the changes; null: until it is changed.
std::string until_of(json const& change) {
  auto const at = change.find("until");
  bool const has_end = at != change.end() && at->is_number();
  return until_text(has_end ? at->get<double>() : 0, unix_exact_s());
}

/// Of one job, a line for each change.
std::vector<std::string> changes_of(json const& row) {
  std::vector<std::string> lines;
  json const& o = row["override"];
  for (json const& l : o.value("limits", json::array())) {
    std::string const channel = l.value("channel", "");
    lines.push_back(fmt::format("{} at most {} {}", channel,
                                rate_words(l.value("limit", 0.0), policy::unit_of_supply(channel)),
                                until_of(l)));
  }
  if (auto const at = o.find("class"); at != o.end() && at->is_object())
    lines.push_back(fmt::format("class {} {}", at->value("class", ""), until_of(*at)));
  if (auto const at = o.find("pause"); at != o.end() && at->is_object())
    lines.push_back("paused " + until_of(*at));
  return lines;
}

void print_changes(json const& rows) {
  std::size_t width = 0;
  auto const name_of = [](json const& row) {
    return row.value("user", "") + "@" + row.value("job", "");
  };
  for (json const& row : rows) width = std::max(width, name_of(row).size());
  if (!rows.empty()) fmt::print("changed by hand:\n");
  for (json const& row : rows)
    for (auto const& line : changes_of(row))
      fmt::print("  {:<{}}  {}\n", name_of(row), width, line);
}

}  // namespace

int policy_log(global_options const& global) {
  daemon_at const daemon = need_daemon(global);
  json const rows = versions(daemon);
  auto const changed = by_hand(daemon);
  if (global.json) {
    fmt::print("{}", dump(json{{"versions", rows}, {"by_hand", changed}}));
    return 0;
  }
  for (auto const& row : rows)
    fmt::print("{:>4}  {:%Y-%m-%d %H:%M:%S}  {}{}{}\n", row.value("version", 0L),
               fmt::localtime(static_cast<std::time_t>(row.value("since_s", 0LL))),
               one_line(row.value("from", "")), who_applied(row),
               &row == &rows.front() ? "  (in force)" : "");
  if (rows.empty()) fmt::print("the daemon has had no policy\n");
  print_changes(changed);
  return 0;
}

int policy_diff(global_options const& global, version_options const& options) {
  daemon_at const daemon = need_daemon(global);
  version const from = find_version(daemon, options.from, 1);
  version const to = find_version(daemon, options.to, 0);
  auto const parsed = [](version const& v) {
    return policy::parse_policy(v.text, fmt::format("version {}", v.number));
  };
  auto const lines = policy::changes(parsed(from), from.text, parsed(to), to.text);
  if (global.json) {
    fmt::print("{}", dump(json{{"from", from.number}, {"to", to.number}, {"changes", lines}}));
    return 0;
  }
  fmt::print("version {} -> version {}:\n", from.number, to.number);
  for (auto const& line : lines) fmt::print("{}\n", line);
  if (lines.empty()) fmt::print("they are the same\n");
  return 0;
}

int policy_rollback(global_options const& global, version_options const& options) {
  daemon_at const daemon = need_daemon(global);
  version const old = find_version(daemon, options.from, 1);
  std::string const name = fmt::format("version {}", old.number);
  return apply(global, daemon,
               {old.text, name, "sluice policy rollback to " + name, options.dry_run});
}

int policy_apply(global_options const& global, apply_options const& options) {
  std::string const text = policy::read_policy_text(options.file);
  return apply(global, need_daemon(global),
               {text, options.file, "sluice policy apply " + options.file, options.dry_run});
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
