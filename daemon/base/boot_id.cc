// SPDX-License-Identifier: Apache-2.0
#include "base/boot_id.h"

#include <fstream>

namespace sluice {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace sluice
