// SPDX-License-Identifier: Apache-2.0
// sluice-top: the screen of `sluice top`, which starts it with the daemon it found. Its arguments
// are between the two of them: SOCKET ROLE NAME SECONDS ORDER FILTER jobs|nodes.
#include <optional>

#include "base/error.h"
#include "base/guard.h"
#include "base/number.h"
#include "base/program.h"
#include "commands/cli/top/screen.h"
#include "commands/cli/top_loop.h"

namespace sluice::cli {

namespace {

int draw_or_print(char** argv) {
  std::optional<daemon_at> daemon;
  if (*argv[1] != 0) daemon = daemon_at{argv[1], argv[2], argv[3]};
  job_source source(daemon, argv[4]);
  top_options options;
  options.sort = argv[6];
  options.filter = argv[7];
  options.nodes = std::string(argv[8]) == "nodes";
  if (!to_number(std::string_view(argv[5]), options.interval_s) || options.interval_s < 0.1)
    throw usage_error("sluice-top: a wrong interval");
  if (show_screen(source, choice_of(options), options.interval_s)) return 0;
  return print_pictures({}, options, source);
}

}  // namespace

}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::install_guard();
  return sluice::guarded("sluice", [&] {
    if (argc != 9) throw sluice::usage_error("sluice-top draws for `sluice top`: start that");
    return sluice::cli::draw_or_print(argv);
  });
}
