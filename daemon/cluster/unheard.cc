// SPDX-License-Identifier: Apache-2.0
#include "cluster/unheard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/quantity.h"
#include "policy/hostlist.h"
#include "policy/supply.h"

namespace sluice::cluster {

namespace {

/// By supply that is shared: what each of its nodes may do without being granted it.
std::map<std::string, policies::rate> own_in(policy::site const& site) {
  std::map<std::string, policies::rate> out;
  for (auto const& s : policy::supplies(site)) {
    policy::own_part const own = policy::own_part_of(site, s);
    if (s.capacity != 0) out.emplace(s.name(), own.escrow + own.floor);
  }
  return out;
}

std::set<std::string_view> names_in(policy::site const& site) {
  return {site.control.nodes.begin(), site.control.nodes.end()};
}

}  // namespace

std::vector<std::string> overruns_of(std::vector<std::string> const& unheard,
                                     policy::site const& now, policy::site const& next) {
  auto const named = names_in(now), stay = names_in(next);
  std::vector<std::string> kept, dropped;
  for (auto const& node : unheard)
    if (named.contains(node)) (stay.contains(node) ? kept : dropped).push_back(node);
  std::vector<std::string> both = kept;
  both.insert(both.end(), dropped.begin(), dropped.end());
  std::vector<std::string> out;
  auto const own_before = own_in(now), own_after = own_in(next);
  for (auto const& s : policy::supplies(now)) {
    auto const then = own_before.find(s.name()), later = own_after.find(s.name());
    if (then == own_before.end() || later == own_after.end()) continue;
    policies::rate const before = then->second, less = before - std::min(before, later->second);
    policies::rate const sum = dropped.size() * before + kept.size() * less;
    if (sum == 0) continue;
    out.push_back(
        fmt::format("{}: nodes that are not heard keep their parts of the policy before until they "
                    "hear of this one ({}): up to {} may be used beyond the capacity",
                    s.name(), policy::hosts_in_words(less != 0 ? both : dropped),
                    rate_words(static_cast<double>(sum) / 1000, s.unit)));
  }
  return out;
}

}  // namespace sluice::cluster
