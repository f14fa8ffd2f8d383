// SPDX-License-Identifier: Apache-2.0
// sluice doctor: will this program be limited? Status 0 yes, 1 no.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands/cli/options.h"
#include "commands/cli/program.h"
#include "commands/cli/report.h"

namespace sluice::cli {

int doctor_verb(global_options const& global, std::string const& file) {
  program_facts const f = inspect_program(find_program(file));
  if (global.json) {
    fmt::print("{}", dump({{"file", f.path},
                           {"through", f.through},
                           {"kind", f.kind},
                           {"interpreter", f.interpreter},
                           {"limited", f.limited},
                           {"why", f.why},
                           {"advice", f.advice}}));
    return f.limited ? 0 : 1;
  }
  fmt::print("{}\n", f.path);
  for (auto const& interpreter : f.through) fmt::print("  is run by {}\n", interpreter);
  fmt::print("  {}: {}\n", f.kind, f.why);
  if (!f.limited) fmt::print("  will NOT be limited");
  if (f.limited) fmt::print("  will be limited");
  fmt::print("{}\n", f.advice.empty() ? "" : "; " + f.advice);
  return f.limited ? 0 : 1;
}

}  // namespace sluice::cli
