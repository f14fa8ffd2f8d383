// SPDX-License-Identifier: Apache-2.0
// Readers of the sections `control` and `access`.
#pragma once

#include "policy/control_settings.h"
#include "policy/reading.h"

namespace sluice::policy {

control_settings read_control(reading const& in, node const& n, reading::names const& classes);
access_rules read_access(reading const& in, node const& n, reading::names const& classes);

}  // namespace sluice::policy
