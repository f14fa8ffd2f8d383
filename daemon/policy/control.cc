// SPDX-License-Identifier: Apache-2.0
#include "policy/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "policy/access.h"
#include "policy/algorithm.h"
#include "policy/background.h"
#include "policy/change.h"
#include "policy/doubts.h"
#include "policy/hostlist.h"
#include "policy/supply.h"

namespace sluice::policy {

namespace {

template <typename Ids, typename Id>
bool holds(Ids const& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::string percent(std::uint32_t ppm) { return fmt::format("{:g} %", ppm / 1e4); }

std::string parts_in_words(control_settings const& c) {
  if (c.nodes.empty())
    return "no node is named: all capacity is the cluster's pool, and a node that lost its parent "
           "keeps 0.1 %";
  std::uint32_t const pool = 1'000'000 - c.escrow_ppm - c.floor_ppm;
  char const* const owner = c.pool == pool_owner::single     ? "given away by the one cluster"
                            : c.pool == pool_owner::majority ? "given away by the cluster that "
                                                               "most nodes obey"
                                                             : "given away by nobody";
  return fmt::format(
      "{} of each capacity is the escrow of the nodes in equal parts, {} is their floor, "
      "{} is {}",
      percent(c.escrow_ppm), percent(c.floor_ppm), percent(pool), owner);
}

char const* orphan_in_words(orphan_mode m) {
  switch (m) {
    case orphan_mode::keep:
      return "a node that lost its parent goes on with its last grant";
    case orphan_mode::open:
      return "a node that lost its parent limits nothing";
    default:
      return "a node that lost its parent uses its own part of the capacity";
  }
}

}  // namespace

bool may_use(site const& s, std::string const& qos_class, uid_t uid,
             std::span<gid_t const> groups) {
  auto const rule = s.access.find(qos_class);
  if (rule == s.access.end() || uid == 0) return true;
  if (holds(rule->second.uids, uid)) return true;
  return std::any_of(groups.begin(), groups.end(),
                     [&](gid_t g) { return holds(rule->second.gids, g); });
}

std::vector<std::string> control_in_words(site const& s) {
  control_settings const& c = s.control;
  std::vector<std::string> out;
  out.push_back(fmt::format("nodes report every {}, a grant lasts {}", duration_text(c.cycle_ns),
                            duration_text(c.lease_ns)));
  if (!c.nodes.empty()) out.push_back(hosts_in_words(c.nodes));
  out.push_back(parts_in_words(c));
  out.push_back(orphan_in_words(c.orphans));
  for (auto const& [name, rule] : s.access)
    out.push_back(fmt::format("class {} may be used by {}", name, people_in_words(rule)));
  if (!s.classes.empty())
    out.push_back(c.default_class.empty()
                      ? "a job that names no class has weight 1 and no reservation"
                      : fmt::format("a job that names no class has class {}", c.default_class));
  if (!c.enforce)
    out.push_back("nothing is delayed: calls that would be are counted (enforce is false)");
  return out;
}

std::vector<std::string> cluster_warnings(site const& s) {
  control_settings const& c = s.control;
  std::vector<std::string> out;
  if (c.orphans != orphan_mode::safe)
    out.push_back(
        fmt::format("orphans \"{}\": while nodes are without a parent the sum of their "
                    "grants may exceed the capacity",
                    name_of(c.orphans)));
  if (c.nodes.empty() && !s.capacity.empty())
    out.push_back(
        "control.nodes is not given: a node of a cluster that loses its parent keeps 0.1 % of "
        "each capacity only");
  if (c.pool == pool_owner::none && c.escrow_ppm + c.floor_ppm < 1'000'000)
    out.push_back(fmt::format("pool_owner \"none\": {} of each capacity are never used",
                              percent(1'000'000 - c.escrow_ppm - c.floor_ppm)));
  return out;
}

std::vector<std::string> warnings(site const& s) {
  control_settings const& c = s.control;
  std::vector<std::string> out;
  for (auto const& row : algorithm_rows)
    if (row.name == s.algorithm && !row.is_ready)
      out.push_back(
          fmt::format("algorithm {} is not meant for production: {}", row.name, row.purpose));
  for (auto const& c : s.classes)
    for (auto const& t : backgrounds_of(s, c.name))
      if (auto const& row = background_rows[t.algorithm]; !row.is_ready)
        out.push_back(fmt::format("class {}: {} is not meant for production: {}", c.name, row.name,
                                  row.purpose));
  for (auto const& [name, rule] : s.access)
    if (rule.uids.size() < rule.users.size() || rule.gids.size() < rule.groups.size())
      out.push_back(
          fmt::format("access.{}: this machine does not know every user and group named", name));
  if (!c.default_class.empty() && s.access.contains(c.default_class))
    out.push_back(
        fmt::format("control.default_class {} is not open to everybody: jobs of other users "
                    "without a class are refused",
                    c.default_class));
  for (auto const& c : s.classes)
    for (auto const& t : promises_of(s, c.name))
      if (!t.has_most)
        out.push_back(fmt::format(
            "class {}: its requests on {} may come to all that can be reserved there, whatever its "
            "jobs make of them; a \"reservation\" beside them is the most",
            c.name, t.supply));
  for (auto const& of : supplies(s))
    if (of.promisable < of.capacity && !of.steered)
      out.push_back(fmt::format(
          "capacity of {}: {} is more than its file system gives whatever meets: only {} of it may "
          "be reserved",
          of.name(), bound_text(of.capacity, of.unit), bound_text(of.promisable, of.unit)));
  for (auto& line : doubts(s.channels)) out.push_back(std::move(line));
  for (auto& line : gaps(s.channels)) out.push_back(std::move(line));
  for (auto& line : idle_shares(s)) out.push_back(std::move(line));
  return out;
}

}  // namespace sluice::policy
