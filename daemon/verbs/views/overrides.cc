// SPDX-License-Identifier: Apache-2.0
#include "verbs/views/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sluice::verbs {

namespace {

using json = nlohmann::json;

constexpr int format = 2;

json json_of(override_mark const& m) {
  return {{"by_owner", m.by_owner}, {"until", m.until_s}, {"until_boot", m.until_boot_s}};
}

void take(json const& from, override_mark& m) {
  from.at("by_owner").get_to(m.by_owner);
  from.at("until").get_to(m.until_s);
  m.until_boot_s = from.value("until_boot", 0.0);
}

json json_of(job_overrides const& o) {
  json row = {{"uid", o.uid}, {"job", o.job}, {"limits", json::array()}};
  for (auto const& l : o.limits) {
    json limit = json_of(l);
    limit["channel"] = l.channel;
    limit["milli_per_second"] = l.value;
    row["limits"].push_back(std::move(limit));
  }
  if (o.qos) row["class"] = json_of(*o.qos);
  if (o.qos) row["class"]["name"] = o.qos->qos_class;
  if (o.pause) row["pause"] = json_of(*o.pause);
  return row;
}

job_overrides overrides_of(json const& row) {
  job_overrides o;
  row.at("uid").get_to(o.uid);
  row.at("job").get_to(o.job);
  for (json const& limit : row.at("limits")) {
    limit_override l;
    take(limit, l);
    limit.at("channel").get_to(l.channel);
    limit.at("milli_per_second").get_to(l.value);
    o.limits.push_back(std::move(l));
  }
  if (auto const at = row.find("class"); at != row.end()) {
    take(*at, o.qos.emplace());
    at->at("name").get_to(o.qos->qos_class);
  }
  if (auto const at = row.find("pause"); at != row.end()) take(*at, o.pause.emplace());
  return o;
}

bool has_ended(override_mark const& m, dated_moment now) {
  if (m.until_boot_s != 0) return m.until_boot_s <= now.boot_s;
  return m.until_s != 0 && m.until_s <= now.unix_s;
}

void for_each_mark(job_overrides& o, auto&& act) {
  for (auto& l : o.limits) act(l);
  if (o.qos) act(*o.qos);
  if (o.pause) act(*o.pause);
}

/// An operator's word stands, and an owner would change it.
bool is_above(override_mark const& standing, override_mark const& fresh) {
  return !standing.by_owner && fresh.by_owner;
}

}  // namespace

override_mark ends_after(override_mark mark, double for_s, dated_moment now) {
  mark.until_s = now.unix_s + for_s;
  mark.until_boot_s = now.boot_s + for_s;
  return mark;
}

limit_override const* job_overrides::limit_of(std::string const& channel) const {
  for (auto const& l : limits)
    if (l.channel == channel) return &l;
  return nullptr;
}

job_overrides const* override_book::find(job_key job) const {
  auto const at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : &at->second;
}

job_overrides& override_book::edit(job_key job, std::uint32_t uid, std::string const& name) {
  job_overrides& o = jobs_[job];
  o.uid = uid;
  o.job = name;
  return o;
}

void override_book::check_owner(job_key job, std::string const& channel,
                                override_mark const& fresh) const {
  if (auto const* const o = find(job))
    if (auto const* const l = o->limit_of(channel); l != nullptr && is_above(*l, fresh))
      throw usage_error(fmt::format(
          "an operator has set {} of this job: only an operator may change it", channel));
}

void override_book::set_limit(job_key job, std::uint32_t uid, std::string const& name,
                              limit_override item) {
  check_owner(job, item.channel, item);
  auto& limits = edit(job, uid, name).limits;
  std::erase_if(limits, [&](auto const& l) { return l.channel == item.channel; });
  limits.push_back(std::move(item));
}

void override_book::set_class(job_key job, std::uint32_t uid, std::string const& name,
                              class_override item) {
  edit(job, uid, name).qos = std::move(item);
}

void override_book::pause(job_key job, std::uint32_t uid, std::string const& name,
                          override_mark const& mark) {
  job_overrides const* const o = find(job);
  if (o != nullptr && o->pause && is_above(*o->pause, mark))
    throw usage_error("an operator has paused this job");
  edit(job, uid, name).pause = mark;
}

bool override_book::withdraw_limit(job_key job, std::string const& channel, bool by_owner) {
  check_owner(job, channel, {by_owner});
  auto const at = jobs_.find(job);
  if (at == jobs_.end() || at->second.limit_of(channel) == nullptr) return false;
  std::erase_if(at->second.limits, [&](auto const& l) { return l.channel == channel; });
  if (at->second.is_empty()) jobs_.erase(at);
  return true;
}

bool override_book::withdraw_class(job_key job) {
  auto const at = jobs_.find(job);
  if (at == jobs_.end() || !at->second.qos) return false;
  at->second.qos.reset();
  if (at->second.is_empty()) jobs_.erase(at);
  return true;
}

bool override_book::resume(job_key job, bool by_owner) {
  auto const at = jobs_.find(job);
  if (at == jobs_.end() || !at->second.pause) return false;
  if (by_owner && !at->second.pause->by_owner)
    throw usage_error("an operator has paused this job: only an operator may resume it");
  at->second.pause.reset();
  if (at->second.is_empty()) jobs_.erase(at);
  return true;
}

std::vector<std::string> override_book::forget_if(
    std::function<bool(job_key, job_overrides const&)> const& over) {
  std::vector<std::string> gone;
  std::erase_if(jobs_, [&](auto const& row) {
    if (!over(row.first, row.second)) return false;
    gone.push_back(fmt::format("job {} is gone, and so are its overrides", row.second.job));
    return true;
  });
  return gone;
}

std::vector<std::string> override_book::expire(dated_moment now) {
  std::vector<std::string> ended;
  for (auto& [key, o] : jobs_) {
    if (o.qos && has_ended(*o.qos, now)) {
      ended.push_back(
          fmt::format("job {}: class {} ends, back to its own class", o.job, o.qos->qos_class));
      o.qos.reset();
    }
    if (o.pause && has_ended(*o.pause, now)) {
      ended.push_back(fmt::format("job {}: the pause ends", o.job));
      o.pause.reset();
    }
    std::erase_if(o.limits, [&, &o = o](limit_override const& l) {
      if (!has_ended(l, now)) return false;
      ended.push_back(fmt::format("job {}: the limit of {} ends", o.job, l.channel));
      return true;
    });
  }
  std::erase_if(jobs_, [](auto const& row) { return row.second.is_empty(); });
  return ended;
}

bool override_book::follow_clock(dated_moment now) {
  bool is_wrong = false;
  for (auto& [key, o] : jobs_)
    for_each_mark(o, [&](override_mark& m) {
      double const until_s = now.unix_s + (m.until_boot_s - now.boot_s);
      if (m.until_boot_s == 0 || std::abs(until_s - m.until_s) < 1) return;
      m.until_s = until_s;
      is_wrong = true;
    });
  return is_wrong;
}

std::string override_book::to_text(std::string const& boot) const {
  return to_text(boot, json::object());
}

std::string override_book::to_text(std::string const& boot, json more) const {
  json all = json::array();
  for (auto const& [key, o] : jobs_) all.push_back(json_of(o));
  more["format"] = format;
  more["boot"] = boot;
  more["overrides"] = std::move(all);
  return more.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

override_book override_book::from_text(
    std::string const& text,
    std::function<job_key(std::uint32_t uid, std::string const& name)> const& key_of,
    std::string const& boot) {
  override_book out;
  try {
    json const whole = json::parse(text);
    if (whole.value("format", 0) != format)
      throw sluice_error("overrides are of another version of sluiced");
    bool const is_of_this_boot = !boot.empty() && whole.value("boot", "") == boot;
    for (json const& row : whole.at("overrides")) {
      job_overrides o = overrides_of(row);
      if (!is_of_this_boot) for_each_mark(o, [](override_mark& m) { m.until_boot_s = 0; });
      if (!o.is_empty()) out.jobs_[key_of(o.uid, o.job)] = std::move(o);
    }
  } catch (json::exception const& e) {
    throw sluice_error(fmt::format("overrides cannot be read: {}", e.what()));
  }
  return out;
}

}  // namespace sluice::verbs
