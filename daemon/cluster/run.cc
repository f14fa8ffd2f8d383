// SPDX-License-Identifier: Apache-2.0
#include "cluster/run.h"

#include "cluster/cluster_role.h"
#include "cluster/controller.h"

namespace sluice::cluster {

int run(runtime::config const& config, runtime::services& services) {
  controller c(config, services);
  cluster_role role(c);
  c.open_socket(role);
  return c.run();
}

}  // namespace sluice::cluster
