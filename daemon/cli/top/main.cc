// SPDX-License-Identifier: Apache-2.0
// sluice-top: the screen of `sluice top`, which starts it with the daemon it found. Its arguments
// are between the two of them: SOCKET ROLE NAME SECONDS ORDER FILTER jobs|nodes.
#include <cstdlib>

#include "cli/top/screen.h"
#include "cli/top_loop.h"
#include "policy/error.h"
#include "policy/program.h"

namespace sluice::cli {

namespace {

int draw_or_print(char** argv) {
  daemon_at daemon;
  daemon.socket = argv[1];
  daemon.role = argv[2];
  daemon.name = argv[3];
  top_options options;
  options.interval_s = std::atof(argv[4]);
  options.sort = argv[5];
  options.filter = argv[6];
  options.nodes = std::string(argv[7]) == "nodes";
  if (!(options.interval_s >= 0.1)) throw usage_error("sluice-top: a wrong interval");
  if (show_screen(daemon, choice_of(options), options.interval_s)) return 0;
  return print_pictures({}, options, daemon);
}

}  // namespace

}  // namespace sluice::cli

int main(int argc, char** argv) {
  return sluice::guarded("sluice", [&] {
    if (argc != 8) throw sluice::usage_error("sluice-top draws for `sluice top`: start that");
    return sluice::cli::draw_or_print(argv);
  });
}
