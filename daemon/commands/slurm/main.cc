// SPDX-License-Identifier: Apache-2.0
// sluice-slurm: what `sluice submit` and `sluice hook` become.
#include <string>

#include "base/error.h"
#include "base/program.h"
#include "commands/slurm/hook.h"

int main(int argc, char** argv) {
  return sluice::guarded("sluice", [&] {
    sluice::slurm::words words(argv + 1, argv + argc);
    std::string const verb = words.empty() ? "" : words.front();
    if (!words.empty()) words.erase(words.begin());
    if (verb == "submit") return sluice::slurm::submit(words);
    if (verb == "hook") return sluice::slurm::hook(words);
    throw sluice::usage_error("sluice-slurm is called by `sluice submit` and `sluice hook`");
  });
}
