// SPDX-License-Identifier: Apache-2.0
#include "node/scheduler.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

using nlohmann::json;

constexpr std::size_t most_announced = 1024, most_limits = 16, most_limit_text = 255;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What is no UTF-8 is replaced: a job's name is whatever its user wrote.
std::string as_utf8(std::string const& text) {
  std::string const literal = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(literal).get<std::string>();
}

std::string text_in(json const& in, char const* key) {
  auto const at = in.find(key);
  if (at == in.end() || !at->is_string()) return {};
  return as_utf8(at->get<std::string>().substr(0, most_limit_text));  // which may cut a character
}

/// "/job_12/…" → 12
std::string job_part(std::string_view path) {
  constexpr std::string_view key = "/job_";
  if (!path.starts_with(key)) return {};
  path.remove_prefix(key.size());
  std::string_view const number = path.substr(0, path.find('/'));
  return is_number(number) ? std::string(number) : std::string();
}

/// "/uid_1000/job_12/…", of version 1.
std::string user_part(std::string_view path) {
  constexpr std::string_view key = "/uid_";
  if (!path.starts_with(key)) return {};
  path.remove_prefix(key.size());
  auto const end = path.find('/');
  if (end == path.npos || !is_number(path.substr(0, end))) return {};
  return job_part(path.substr(end));
}

std::string job_of_path(std::string_view path, std::string_view node) {
  std::string const own = fmt::format("/slurm_{}", node);
  std::string const own_scope = fmt::format("/system.slice/{}_slurmstepd.scope", node);
  for (std::string_view top : {std::string_view(own), std::string_view("/slurm")})
    if (path.starts_with(top))
      if (std::string job = user_part(path.substr(top.size())); !job.empty()) return job;
  for (std::string_view top :
       {std::string_view(own_scope), std::string_view("/system.slice/slurmstepd.scope")})
    if (path.starts_with(top))
      if (std::string job = job_part(path.substr(top.size())); !job.empty()) return job;
  return {};
}

}  // namespace

announcement read_announcement(std::string const& text, std::string const& job) {
  json const in = json::parse(as_utf8(text), nullptr, false);
  auto const number = [&](char const* key) {
    return in.contains(key) && in[key].is_number_unsigned();
  };
  if (!in.is_object() || !number("uid") || text_in(in, "job") != job)
    throw sluice_error(fmt::format("{}: no announcement of a job", job));
  announcement a;
  a.job = job;
  a.uid = in["uid"].get<uid_t>();
  if (number("gid")) a.gid = in["gid"].get<gid_t>();
  a.qos_class = text_in(in, "class");
  a.account = text_in(in, "account");
  a.label = text_in(in, "label");
  if (number("nodes")) a.nodes = std::clamp(in["nodes"].get<unsigned>(), 1u, 1'000'000u);
  if (auto const at = in.find("limits"); at != in.end() && at->is_array())
    for (auto const& limit : *at)
      if (limit.is_string() && a.limits.size() < most_limits)
        a.limits.push_back(limit.get<std::string>());
  return a;
}

bool is_schedulers_name(std::string_view name) {
  auto const end = name.find_first_not_of("0123456789");
  return !name.empty() && end != 0 && (end == name.npos || name[end] == '.' || name[end] == '_');
}

std::string scheduler_dir(std::string const& run_dir) { return run_dir + "/scheduler"; }

std::optional<announcements> announced(std::string const& run_dir) {
  namespace fs = std::filesystem;
  std::string const dir = scheduler_dir(run_dir);
  announcements out;
  struct stat st = {};
  if (lstat(dir.c_str(), &st) != 0) {
    if (errno == ENOENT) return out;
    return std::nullopt;
  }
  if (!S_ISDIR(st.st_mode) || (st.st_mode & 022) != 0 || (st.st_uid != 0 && st.st_uid != geteuid()))
    return out;
  std::error_code failed;
  for (fs::directory_iterator at(dir, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::string name = at->path().filename();
    if (name[0] == '.') continue;
    out.is_cut = out.names.size() == most_announced;
    if (out.is_cut) break;
    out.names.push_back(std::move(name));
  }
  if (failed) return std::nullopt;
  std::sort(out.names.begin(), out.names.end());
  return out;
}

bool is_withdrawn(announcements const& by, std::string const& run_dir, std::string const& job) {
  if (std::binary_search(by.names.begin(), by.names.end(), job)) return false;
  struct stat st = {};
  return !by.is_cut ||
         (lstat((scheduler_dir(run_dir) + "/" + job).c_str(), &st) != 0 && errno == ENOENT);
}

std::string job_in_groups(std::string_view text, std::string_view node) {
  while (!text.empty()) {
    std::string_view const line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto const first = line.find(':');
    auto const second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string job = job_of_path(line.substr(second + 1), node);
    if (!job.empty()) return job;
  }
  return {};
}

}  // namespace sluice::node
