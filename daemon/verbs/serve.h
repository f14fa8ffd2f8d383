// SPDX-License-Identifier: Apache-2.0
// The answers of a daemon's local socket: one table of verbs for all roles.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "verbs/role.h"

namespace sluice::verbs {

/// The daemon of a login node may ask the cluster for its users, and that one answers.
bool is_from_afar(verb which);

/// `through`: the node at whose socket it was asked; empty: here. Throws sluice::error.
nlohmann::json serve(role& r, local::peer const& who, nlohmann::json const& request,
                     std::string const& through = {});

/// The places at the local socket.
void publish(runtime::metric_table& metrics, local::server::usage const& used);

}  // namespace sluice::verbs
