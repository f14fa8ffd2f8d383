// SPDX-License-Identifier: Apache-2.0
// Which function runs which role.
#include "cluster/run.h"
#include "node/run.h"
#include "sluiced/parts.h"

namespace sluice::sluiced {

run_function function_of(control::role_kind role) {
  return role == control::role_kind::node ? node::run : cluster::run;
}

}  // namespace sluice::sluiced
