// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "local/request.h"
#include "policy/supply.h"

namespace sluice::runtime {

namespace {

using nlohmann::json;

json json_of(policy_version const& v) {
  json out = {{"version", v.number},
              {"since_s", v.since_s},
              {"from", v.source.from},
              {"by_uid", nullptr},
              {"hash", fmt::format("{:016x}", policy::policy_hash(v.text))},
              {"bytes", v.text.size()}};
  if (v.source.by_uid) out["by_uid"] = *v.source.by_uid;
  return out;
}

std::optional<policy_version> read_version(std::filesystem::path const& path) {
  auto const text = read_file(path);
  if (!text) return std::nullopt;
  json const row = json::parse(*text, nullptr, false);
  policy_version v;
  try {
    row.at("version").get_to(v.number);
    row.at("since_s").get_to(v.since_s);
    row.at("from").get_to(v.source.from);
    row.at("text").get_to(v.text);
    if (!row.at("by_uid").is_null()) v.source.by_uid = row["by_uid"].get<std::uint32_t>();
  } catch (json::exception const&) {
    return std::nullopt;
  }
  if (path.filename() != fmt::format("{}.json", v.number)) return std::nullopt;
  return v;
}

}  // namespace

policy_log::policy_log(std::string dir) : dir_(std::move(dir)) {
  std::error_code failed;
  for (auto it = std::filesystem::directory_iterator(dir_, failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed))
    if (auto v = read_version(it->path())) versions_.push_back(*std::move(v));
  std::sort(versions_.begin(), versions_.end(),
            [](auto const& a, auto const& b) { return a.number < b.number; });
}

std::string policy_log::file_of(std::uint64_t number) const {
  return fmt::format("{}/{}.json", dir_, number);
}

bool policy_log::note(std::string const& text, policy_source const& source, std::int64_t now_s) {
  if (!versions_.empty() && versions_.back().text == text) return true;
  std::uint64_t const number = versions_.empty() ? 1 : versions_.back().number + 1;
  versions_.push_back({number, now_s, source, text});
  json row = json_of(versions_.back());
  row["text"] = text;
  for (; versions_.size() > most_versions; versions_.erase(versions_.begin()))
    unlink(file_of(versions_.front().number).c_str());
  if (mkdir(dir_.c_str(), 0700) != 0 && errno != EEXIST) return false;
  return replace_file(file_of(versions_.back().number),
                      row.dump(1, ' ', false, json::error_handler_t::replace),
                      {.is_durable = true});
}

json policy_log::answer(json const& request) const {
  auto const wanted = local::whole_if(request, "version", 1, INT64_MAX);
  if (!wanted) {
    json rows = json::array();
    for (auto it = versions_.rbegin(); it != versions_.rend(); ++it) rows.push_back(json_of(*it));
    return {{"versions", rows}};
  }
  for (auto const& v : versions_)
    if (v.number == static_cast<std::uint64_t>(*wanted)) {
      json row = json_of(v);
      row["text"] = v.text;
      return row;
    }
  throw usage_error(fmt::format(
      "the daemon has no version {} of its policy: sluice policy log lists them", *wanted));
}

}  // namespace sluice::runtime
