// SPDX-License-Identifier: Apache-2.0
#include "policy/class_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "policy/control.h"
#include "policy/limit.h"

namespace sluice::policy {

namespace {

bool holds(std::vector<std::string> const& names, std::string const& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void check_class(site const& s, std::string const& qos_class, uid_t uid,
                 std::span<gid_t const> groups, std::string const& user) {
  std::vector<std::string> known, open;
  for (auto const& c : s.classes) {
    known.push_back(c.name);
    if (may_use(s, c.name, uid, groups)) open.push_back(c.name);
  }
  if (!holds(known, qos_class))
    throw usage_error(fmt::format("the policy has no class \"{}\"{}{}", qos_class,
                                  did_you_mean(qos_class, known), it_has(known)));
  if (!holds(open, qos_class))
    throw usage_error(
        fmt::format("user {} may not use the class \"{}\" (but: {})", user, qos_class,
                    open.empty() ? "none" : fmt::format("{}", fmt::join(open, ", "))));
}

std::vector<std::string> split_limits(std::string const& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const end = std::min(text.find(',', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

nlohmann::json class_list(site const& s, person const& who, std::optional<std::string> const& wish,
                          std::optional<std::string> const& limits) {
  std::vector<gid_t> groups = who.groups;
  groups.push_back(who.gid);
  if (wish) check_class(s, *wish, who.uid, groups, who.name);
  for (auto const& limit : split_limits(limits.value_or(""))) parse_limit(limit);
  nlohmann::json rows = nlohmann::json::array();
  for (auto const& c : s.classes)
    rows.push_back({{"class", c.name}, {"open", may_use(s, c.name, who.uid, groups)}});
  return {{"classes", std::move(rows)}, {"default", s.control.default_class}};
}

}  // namespace sluice::policy
