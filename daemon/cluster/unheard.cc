// SPDX-License-Identifier: Apache-2.0
#include "cluster/unheard.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/limit.h"
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

bool names(policy::site const& site, std::string const& node) {
  return std::ranges::find(site.control.nodes, node) != site.control.nodes.end();
}

}  // namespace

std::vector<std::string> overruns_of(std::vector<std::string> const& unheard,
                                     policy::site const& now, policy::site const& next) {
  std::vector<std::string> out;
  for (auto const& s : policy::supplies(now)) {
    policies::rate const before = s.capacity == 0 ? 0 : own_of(now, s);
    policies::rate const after = own_of(next, s.name());
    policies::rate sum = 0;
    std::string who;
    for (auto const& node : unheard) {
      policies::rate const known = names(next, node) ? after : 0;
      if (!names(now, node) || after == policies::unbounded || before <= known) continue;
      sum += before - known;
      who += (who.empty() ? "" : ", ") + node;
    }
    if (sum != 0)
      out.push_back(
          fmt::format("{}: {} not heard, keeps its part of the policy before until it hears "
                      "of this one: up to {} may be used beyond the capacity",
                      s.name(), who, policy::bound_text(sum, s.unit)));
  }
  return out;
}

}  // namespace sluice::cluster
