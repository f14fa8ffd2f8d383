// SPDX-License-Identifier: Apache-2.0
// The verbs of the local socket of a cluster or relay. On a cluster a change holds for the whole
// cluster, on a relay for what is below it while it has no parent to obey. Who asks is known by the
// kernel: operators (root and the daemon's user) may do all; the owner of a job may lower its
// limit, pause and resume it. A node may ask for its users; nobody from afar is an operator.
#pragma once

#include <nlohmann/json.hpp>

#include "cluster/controller.h"
#include "local/local.h"

namespace sluice::cluster {

/// `through`: the child that asks; empty: it was asked here.
nlohmann::json serve_request(controller& c, local::peer const& who, nlohmann::json const& request,
                             std::string const& through = {});

}  // namespace sluice::cluster
