// SPDX-License-Identifier: Apache-2.0
// Options before a verb, as in `sluice --run-dir D report`. The program that serves the verb gets
// and accepts them all. Options that mean nothing to it are not in its --help.
#pragma once

#include <string>

namespace sluice {

struct common_options {
  std::string run_dir;  // empty: the default
  bool json = false;
  bool verbose = false;
  bool no_daemon = false;
};

/// `app` is a CLI::App.
template <class App>
void take_common_options(App& app, common_options& o) {
  app.add_option("--run-dir", o.run_dir, "a daemon's directory")
      ->type_name("DIR")
      ->take_last()
      ->group("");
  app.add_flag("--json", o.json, "print JSON")->group("");
  app.add_flag("-v,--verbose", o.verbose, "say what is done")->group("");
  app.add_flag("--no-daemon", o.no_daemon, "as if no daemon were running")->group("");
}

/// One of them that means something.
template <class App>
void show_option(App& app, char const* name, char const* help) {
  app.get_option(name)->description(help)->group("Options");
}

}  // namespace sluice
