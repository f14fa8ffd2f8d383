// SPDX-License-Identifier: Apache-2.0
// The simulations, each by its name: `simulate NAME [OPTION...]`. Time is virtual everywhere.
#include <cstdio>
#include <cstring>
#include <exception>

#include "compare.h"
#include "lease.h"

namespace {

struct simulation {
  char const* name;
  int (*run)(int argc, char** argv);  // argv[0] is the name
};

constexpr simulation simulations[] = {
    {"compare", sluice::sim::compare_main},
    {"lease", sluice::sim::lease_main},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    for (simulation const& s : simulations)
      if (argc > 1 && std::strcmp(argv[1], s.name) == 0) return s.run(argc - 1, argv + 1);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "simulate: %s\n", e.what());
    return 1;
  }
  std::fputs("usage: simulate NAME [OPTION...], NAME one of:", stderr);
  for (simulation const& s : simulations) std::fprintf(stderr, " %s", s.name);
  std::fputs("\n", stderr);
  return 2;
}
