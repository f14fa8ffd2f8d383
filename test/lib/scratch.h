// SPDX-License-Identifier: Apache-2.0
// A directory of its own for one test case, gone with it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace sluice::test {

struct scratch {
  std::string dir;
  scratch() {
    char name[] = "/tmp/sluice-unit.XXXXXX";
    dir = mkdtemp(name);
  }
  ~scratch() { std::filesystem::remove_all(dir); }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
};

}  // namespace sluice::test
