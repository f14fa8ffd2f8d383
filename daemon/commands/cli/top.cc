// SPDX-License-Identifier: Apache-2.0
// sluice top: jobs, what they are granted and who waits. On a terminal sluice-top draws it, so that
// `sluice run` does not load what draws; elsewhere it is printed here, as in a batch.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/installed.h"
#include "commands/cli/beside.h"
#include "commands/cli/job_source.h"
#include "commands/cli/top_loop.h"

namespace sluice::cli {

namespace {

bool can_draw() {
  char const* const term = std::getenv("TERM");
  if (term == nullptr || *term == 0) return false;
  std::string_view const name = term;
  return name != "dumb" && name != "unknown" && isatty(STDIN_FILENO) == 1 &&
         isatty(STDOUT_FILENO) == 1;
}

/// See top/main.cc.
std::vector<std::string> words_of(job_source const& source, top_options const& options) {
  daemon_at const daemon = source.daemon().value_or(daemon_at{});
  return {daemon.socket,
          daemon.role,
          daemon.name,
          source.own_run_dir(),
          fmt::format("{}", options.interval_s),
          options.sort,
          options.filter,
          options.nodes ? "nodes" : "jobs"};
}

}  // namespace

int top_verb(global_options const& global, top_options const& options) {
  choice_of(options);  // refused before anything is drawn
  job_source source = job_source::find(global);
  if (!options.batch && !global.json && can_draw() && !find_beside("sluice-top").empty())
    become_beside("sluice-top", words_of(source, options));
  top_options printed = options;
  if (global.json && !options.batch && options.count == 0) printed.count = 1;
  return print_pictures(global, printed, source);
}

}  // namespace sluice::cli
