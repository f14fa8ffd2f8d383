// SPDX-License-Identifier: Apache-2.0
#include "sluiced/roles.h"

#include "cluster/run.h"
#include "node/run.h"

namespace sluice::sluiced {

run_function function_of(runtime::role_kind role) {
  return role == runtime::role_kind::node ? node::run : cluster::run;
}

}  // namespace sluice::sluiced
