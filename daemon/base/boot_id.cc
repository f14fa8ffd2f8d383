// SPDX-License-Identifier: Apache-2.0
#include "base/boot_id.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <fstream>

namespace sluice {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string clock_id() {
  std::string const boot = boot_id();
  struct stat space = {};
  // A kernel that has none has one clock.
  if (stat("/proc/self/ns/time", &space) != 0) space.st_ino = 0;
  return boot.empty()
             ? boot
             : fmt::format("{:016x}", XXH3_64bits_withSeed(boot.data(), boot.size(), space.st_ino));
}

}  // namespace sluice
