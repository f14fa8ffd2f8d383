// SPDX-License-Identifier: Apache-2.0
// A node that is not heard does not learn of a new policy. Its own part of the old one (see
// policy::own_part) is lost to the budget of the new one, where that does not name the node or
// gives it less.
#pragma once

#include <string>
#include <vector>

#include "policy/site.h"

namespace sluice::cluster {

/// One sentence for each supply that these children may overrun under `next`, until they hear of
/// it: those that `now` names, which they are said to have heard of.
std::vector<std::string> overruns_of(std::vector<std::string> const& unheard,
                                     policy::site const& now, policy::site const& next);

}  // namespace sluice::cluster
