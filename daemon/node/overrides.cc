// SPDX-License-Identifier: Apache-2.0
#include "node/overrides.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/error.h"

namespace sluice::node {

namespace {

using nlohmann::json;

json to_json(override_item const& i) {
  return {{"limit", i.limit},
          {"class", i.qos_class},
          {"until", i.until_s},
          {"operator", i.by_operator}};
}

override_item item_from(json const& in) {
  return {in.at("limit").get<rate>(), in.at("class").get<std::string>(),
          in.at("until").get<std::int64_t>(), in.at("operator").get<bool>()};
}

job_overrides job_from(json const& in) {
  job_overrides out;
  for (auto const& [channel, item] : in.at("limits").items()) out.limits[channel] = item_from(item);
  if (auto const at = in.find("class"); at != in.end()) out.qos_class = item_from(*at);
  if (auto const at = in.find("pause"); at != in.end()) out.pause = item_from(*at);
  return out;
}

bool is_over(override_item const& i, std::int64_t now_s) {
  return i.until_s != 0 && i.until_s <= now_s;
}

bool drop_if_over(std::optional<override_item>& i, std::int64_t now_s) {
  if (!i || !is_over(*i, now_s)) return false;
  i.reset();
  return true;
}

}  // namespace

job_overrides const* override_book::find(job_id const& job) const {
  auto const at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : &at->second;
}

void override_book::limit(job_id const& job, std::string const& channel,
                          override_item const& item) {
  auto& limits = jobs_[job].limits;
  auto const at = limits.find(channel);
  bool const stands = at != limits.end() && at->second.by_operator && !item.by_operator;
  if (stands) throw usage_error("an operator has set a limit for this job: ask for another one");
  limits[channel] = item;
}

void override_book::qos_class(job_id const& job, override_item const& item) {
  jobs_[job].qos_class = item;
}

void override_book::pause(job_id const& job, override_item const& item) {
  auto& pause = jobs_[job].pause;
  if (pause && pause->by_operator && !item.by_operator) return;  // paused already
  pause = item;
}

bool override_book::resume(job_id const& job, bool by_operator) {
  auto const at = jobs_.find(job);
  if (at == jobs_.end() || !at->second.pause) return false;
  if (at->second.pause->by_operator && !by_operator)
    throw usage_error("an operator has paused this job");
  at->second.pause.reset();
  if (at->second.is_empty()) jobs_.erase(at);
  return true;
}

void override_book::forget(job_id const& job) { jobs_.erase(job); }

bool override_book::keep_only(std::vector<job_id> const& jobs) {
  return std::erase_if(jobs_, [&](auto const& e) {
           return !std::binary_search(jobs.begin(), jobs.end(), e.first);
         }) != 0;
}

bool override_book::expire(std::int64_t now_s) {
  bool changed = false;
  for (auto& [job, o] : jobs_) {
    changed =
        std::erase_if(o.limits, [&](auto const& e) { return is_over(e.second, now_s); }) != 0 ||
        changed;
    changed = drop_if_over(o.qos_class, now_s) || changed;
    changed = drop_if_over(o.pause, now_s) || changed;
  }
  std::erase_if(jobs_, [](auto const& e) { return e.second.is_empty(); });
  return changed;
}

std::string override_book::to_text() const {
  json out = {{"format", 1}, {"jobs", json::object()}};
  for (auto const& [job, o] : jobs_) {
    json row = {{"limits", json::object()}};
    for (auto const& [channel, item] : o.limits) row["limits"][channel] = to_json(item);
    if (o.qos_class) row["class"] = to_json(*o.qos_class);
    if (o.pause) row["pause"] = to_json(*o.pause);
    out["jobs"][job] = row;
  }
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

override_book override_book::from_text(std::string const& text) {
  override_book out;
  json const in = json::parse(text, nullptr, false);
  if (!in.is_object() || !in.contains("jobs") || !in["jobs"].is_object()) return out;
  for (auto const& [job, row] : in["jobs"].items()) {
    try {
      out.jobs_[job] = job_from(row);
    } catch (json::exception const&) {
      out.jobs_.erase(job);
    }
  }
  return out;
}

}  // namespace sluice::node
