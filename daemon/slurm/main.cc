// SPDX-License-Identifier: Apache-2.0
// sluice-slurm: what `sluice submit` and `sluice hook` become.
#include <fmt/format.h>

#include <cstdio>

#include "policy/error.h"
#include "slurm/hook.h"

int main(int argc, char** argv) {
  sluice::slurm::words words(argv + 1, argv + argc);
  std::string const verb = words.empty() ? "" : words.front();
  if (!words.empty()) words.erase(words.begin());
  try {
    if (verb == "submit") return sluice::slurm::submit(words);
    if (verb == "hook") return sluice::slurm::hook(words);
    throw sluice::usage_error("sluice-slurm is called by `sluice submit` and `sluice hook`");
  } catch (sluice::error const& e) {
    fmt::print(stderr, "sluice: {}\n", e.what());
    return e.status();
  } catch (std::exception const& e) {
    fmt::print(stderr, "sluice: {}\n", e.what());
    return sluice::exit_sluice;
  }
}
