// SPDX-License-Identifier: Apache-2.0
// How many supplies there are at most: a policy may have so many, a message between daemons and the
// file of a lease carry so many. A supply is what a target has of one channel.
#pragma once

namespace sluice {

inline constexpr unsigned most_supplies = 240;

}  // namespace sluice
