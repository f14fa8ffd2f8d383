// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "policy/cost_file.h"

namespace sluice::cli {

namespace {

bool counts_vops(policy::channel_spec const& c) { return c.amount.unit == core::unit_kind::vops; }

/// Null: none. One that names the target goes before one that names none.
given_costs const* costs_for(policy::channel_spec const& c, std::vector<given_costs> const& all) {
  given_costs const* best = nullptr;
  for (auto const& each : all) {
    if (!each.target.empty() && each.target != c.target) continue;
    if (best != nullptr && best->target == each.target)
      throw usage_error(fmt::format("{} and {} are both of {}", best->said, each.said, c.origin));
    if (best == nullptr || best->target.empty()) best = &each;
  }
  return best;
}

}  // namespace

std::vector<given_costs> read_costs(std::vector<std::string> const& said) {
  std::vector<given_costs> out;
  for (auto const& text : said) {
    auto const at = std::min(text.rfind('@'), text.size());
    given_costs g = {"--cost " + text, at == text.size() ? "" : text.substr(at + 1), nullptr};
    if (at == 0 || at + 1 == text.size())
      throw usage_error(fmt::format("{}: wanted FILE[@TARGET]", g.said));
    g.costs = std::make_shared<policy::cost_file const>(policy::read_cost_file(text.substr(0, at)));
    out.push_back(std::move(g));
  }
  return out;
}

void give_costs(std::vector<given_costs> const& costs,
                std::vector<policy::channel_spec>& channels) {
  std::vector<given_costs const*> used;
  for (auto& c : channels) {
    if (!counts_vops(c)) continue;
    given_costs const* const found = costs_for(c, costs);
    if (found == nullptr) continue;
    c.costs = found->costs;
    used.push_back(found);
  }
  for (auto const& each : costs)
    if (std::find(used.begin(), used.end(), &each) == used.end())
      throw usage_error(fmt::format("{}: no limit in VOPs needs it; write --limit vops=5k/s@{}",
                                    each.said, each.target.empty() ? "DIR" : each.target));
}

}  // namespace sluice::cli
