// SPDX-License-Identifier: Apache-2.0
#include "cluster/unheard.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/quantity.h"
#include "policy/hostlist.h"
#include "policy/supply.h"

namespace sluice::cluster {

namespace {

policies::rate own_of(policy::site const& site, policy::supply const& of) {
  policy::own_part const own = policy::own_part_of(site, of);
  return own.escrow + own.floor;
}

/// What each of its nodes may do without being granted it.
policies::rate own_of(policy::site const& site, std::string const& supply) {
  for (auto const& s : policy::supplies(site))
    if (s.name() == supply && s.capacity != 0) return own_of(site, s);
  return policies::unbounded;  // nobody shares it any more
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
  for (auto const& s : policy::supplies(now)) {
    policies::rate const before = s.capacity == 0 ? 0 : own_of(now, s);
    policies::rate const after = own_of(next, s.name());
    if (after == policies::unbounded) continue;
    policies::rate const less = before - std::min(before, after);
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
