// SPDX-License-Identifier: Apache-2.0
#include "cluster/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/error.h"
#include "wire/message.h"

namespace sluice::cluster {

namespace {

using json = nlohmann::json;

constexpr lease::time_ns gone_most_ns = 120'000'000'000;
constexpr lease::time_ns unseen_most_ns = 86'400'000'000'000;

void put(json& to, job_override::mark const& m) {
  to["by_owner"] = m.by_owner;
  to["until"] = m.until_s;
}

void take(json const& from, job_override::mark& m) {
  m.set = true;
  m.by_owner = from.at("by_owner").get<bool>();
  m.until_s = from.at("until").get<std::int64_t>();
}

bool has_ended(job_override::mark const& m, std::int64_t now_s) {
  return m.set && m.until_s != 0 && m.until_s <= now_s;
}

}  // namespace

job_override::limit_row const* job_override::limit_of(std::uint32_t supply) const {
  for (limit_row const& l : limits)
    if (l.supply == supply) return &l;
  return nullptr;
}

job_override const* overrides::find(std::uint64_t job) const {
  auto const at = rows_.find(job);
  return at == rows_.end() ? nullptr : &at->second;
}

job_override& overrides::edit(std::uint64_t job, std::uint32_t uid, std::string const& name) {
  job_override& o = rows_[job];
  o.uid = uid;
  o.job = name;
  return o;
}

void overrides::drop_empty() {
  std::erase_if(rows_, [](auto const& row) { return row.second.is_empty(); });
}

std::vector<std::string> overrides::expire(std::int64_t now_s) {
  std::vector<std::string> ended;
  for (auto& [key, o] : rows_) {
    if (has_ended(o.qos, now_s)) {
      ended.push_back(fmt::format("job {}: class {} ends, back to its own", o.job, o.qos_class));
      o.qos = {};
    }
    if (has_ended(o.pause, now_s)) {
      ended.push_back(fmt::format("job {}: the pause ends", o.job));
      o.pause = {};
    }
    for (auto const& l : o.limits)
      if (has_ended(l, now_s))
        ended.push_back(fmt::format("job {}: the limit of {} ends", o.job, l.name));
    std::erase_if(o.limits, [&](auto const& l) { return has_ended(l, now_s); });
  }
  drop_empty();
  return ended;
}

std::vector<std::string> overrides::retire(
    lease::time_ns now, std::function<presence(std::uint64_t, job_override&)> const& look) {
  std::vector<std::string> ended;
  for (auto at = rows_.begin(); at != rows_.end();) {
    job_override& o = at->second;
    presence const is = look(at->first, o);
    if (is != presence::gone) o.gone_since = 0;
    if (is == presence::here) o.unseen_since = 0;
    if (is != presence::here && o.unseen_since == 0) o.unseen_since = now;
    if (is == presence::gone && o.gone_since == 0) o.gone_since = now;
    bool const over = (o.gone_since != 0 && now - o.gone_since >= gone_most_ns) ||
                      (o.unseen_since != 0 && now - o.unseen_since >= unseen_most_ns);
    if (over) ended.push_back(fmt::format("job {} is gone, what was set for it too", o.job));
    at = over ? rows_.erase(at) : std::next(at);
  }
  return ended;
}

std::string overrides::to_json() const {
  json all = json::array();
  for (auto const& [key, o] : rows_) {
    json row = {{"uid", o.uid}, {"job", o.job}, {"limits", json::array()}};
    if (o.qos.set) put(row["class"] = {{"name", o.qos_class}}, o.qos);
    if (o.pause.set) put(row["pause"] = json::object(), o.pause);
    for (auto const& l : o.limits) {
      json limit = {{"supply", l.name}, {"milli_per_second", l.value}};
      put(limit, l);
      row["limits"].push_back(limit);
    }
    all.push_back(row);
  }
  return json{{"version", 1}, {"overrides", all}}.dump(2) + "\n";
}

overrides overrides::from_json(std::string const& text) {
  overrides out;
  try {
    json const whole = json::parse(text);
    if (whole.at("version") != 1) throw sluice_error("overrides of another version");
    for (json const& row : whole.at("overrides")) {
      auto const uid = row.at("uid").get<std::uint32_t>();
      auto const name = row.at("job").get<std::string>();
      job_override& o = out.edit(wire::job_key(uid, name), uid, name);
      if (auto at = row.find("class"); at != row.end()) {
        take(*at, o.qos);
        o.qos_class = at->at("name").get<std::string>();
        o.class_key = wire::class_key(o.qos_class);
      }
      if (auto at = row.find("pause"); at != row.end()) take(*at, o.pause);
      for (json const& limit : row.at("limits")) {
        job_override::limit_row l;
        take(limit, l);
        l.name = limit.at("supply").get<std::string>();
        auto const split = l.name.find('@');
        if (split == std::string::npos) throw sluice_error("a limit without a target");
        l.supply = wire::supply_key(l.name.substr(0, split), l.name.substr(split + 1));
        l.value = limit.at("milli_per_second").get<lease::rate>();
        o.limits.push_back(l);
      }
    }
  } catch (json::exception const& e) {
    throw sluice_error(fmt::format("overrides cannot be read: {}", e.what()));
  }
  out.drop_empty();
  return out;
}

}  // namespace sluice::cluster
