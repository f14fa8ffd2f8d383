// SPDX-License-Identifier: Apache-2.0
#include "node/job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "segment/jobs.h"
#include "wire/message.h"

namespace sluice::node {

using nlohmann::json;

namespace {

json json_of(scheduler_terms const& s) {
  json steps = json::array();
  for (auto const& p : s.steps) steps.push_back({p.pid, p.start_ticks});
  return {{"held", s.is_held},    {"metered", s.is_metered},        {"open", s.is_open},
          {"batch", s.had_batch}, {"account", s.account},           {"label", s.label},
          {"nodes", s.nodes},     {"since", s.since_unix_s},        {"note", s.note},
          {"steps", steps},       {"since_boot_s", s.since_boot_s}, {"boot", s.boot}};
}

scheduler_terms scheduler_of(json const& in) {
  scheduler_terms s;
  s.is_held = in.at("held").get<bool>();
  s.is_metered = in.at("metered").get<bool>();
  s.is_open = in.at("open").get<bool>();
  s.had_batch = in.at("batch").get<bool>();
  s.account = in.at("account").get<std::string>();
  s.label = in.at("label").get<std::string>();
  s.nodes = in.at("nodes").get<unsigned>();
  s.since_unix_s = in.at("since").get<std::int64_t>();
  s.note = in.at("note").get<std::string>();
  for (auto const& p : in.at("steps"))
    s.steps.push_back({p.at(0).get<std::uint32_t>(), p.at(1).get<std::uint64_t>()});
  s.since_boot_s = in.value("since_boot_s", 0.0);
  s.boot = in.value("boot", "");
  return s;
}

unit_kind unit_of_name(std::string const& name) {
  unit_kind unit{};
  if (!core::find_unit(name, unit))
    throw sluice_error(fmt::format("job.json: there is no unit {}", name));
  return unit;
}

}  // namespace

std::string to_text(job_record const& r) {
  json fixed = json::array(), joiners = json::array();
  for (auto const& f : r.fixed)
    fixed.push_back({{"name", f.name},
                     {"unit", core::row_of(f.unit).name},
                     {"rate_q40", f.rate_q40},
                     {"own", f.is_own}});
  for (auto const& p : r.joiners) joiners.push_back({p.pid, p.start_ticks});
  json out = {
      {"format", 1},          {"uid", r.uid},           {"gid", r.gid},       {"name", r.name},
      {"class", r.qos_class}, {"monitor", r.monitor},   {"limits", r.limits}, {"fixed", fixed},
      {"granted", r.granted}, {"left_out", r.left_out}, {"joiners", joiners}};
  if (r.sizes.segment != 0) out["segment_bytes"] = r.sizes.segment;
  if (r.sizes.order != 0) out["order_bytes"] = r.sizes.order;
  if (r.scheduler) out["scheduler"] = json_of(*r.scheduler);
  for (auto const& a : r.after) out["after"].push_back({a.root, a.patience_ns});
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

job_record read_record(std::string const& text) try {
  json const in = json::parse(text);
  if (in.at("format") != 1) throw sluice_error("job.json: made by another version of sluice");
  job_record r;
  r.uid = in.at("uid").get<uid_t>();
  r.gid = in.at("gid").get<gid_t>();
  r.name = in.at("name").get<std::string>();
  r.qos_class = in.at("class").get<std::string>();
  r.monitor = in.at("monitor").get<bool>();
  r.limits = in.at("limits").get<std::vector<std::string>>();
  r.granted = in.at("granted").get<std::vector<std::string>>();
  if (in.contains("left_out")) r.left_out = in["left_out"].get<std::vector<std::string>>();
  for (auto const& f : in.at("fixed"))
    r.fixed.push_back({f.at("name").get<std::string>(),
                       unit_of_name(f.at("unit").get<std::string>()),
                       f.at("rate_q40").get<std::uint64_t>(), f.at("own").get<bool>()});
  for (auto const& p : in.at("joiners"))
    r.joiners.push_back({p.at(0).get<std::uint32_t>(), p.at(1).get<std::uint64_t>()});
  r.sizes = {in.value("segment_bytes", std::uint64_t{0}),
             in.value("order_bytes", std::uint64_t{0})};
  if (in.contains("scheduler")) r.scheduler = scheduler_of(in["scheduler"]);
  if (in.contains("after"))
    for (auto const& a : in["after"])
      r.after.push_back({a.at(0).get<std::string>(), a.at(1).get<std::int64_t>()});
  return r;
} catch (json::exception const& e) {
  throw sluice_error(fmt::format("job.json: {}", e.what()));
}

job::job(std::string folder_, job_record record_, segment::job_memory map_)
    : folder(std::move(folder_)),
      record(std::move(record_)),
      key(wire::job_key(record.uid, record.name)),
      map(std::move(map_)) {}

}  // namespace sluice::node
