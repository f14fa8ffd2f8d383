// SPDX-License-Identifier: Apache-2.0
// Verbs of other programs: sluice becomes the program, which reads the rest of the words. Options
// before the verb apply to all verbs, so all are passed on (base/common_options.h).
#include "commands/cli/beside.h"

#include "commands/cli/options.h"

namespace sluice::cli {

int forward_verb(global_options const& global, forwarded_verb const& verb,
                 std::vector<std::string> const& arguments) {
  std::vector<std::string> words;
  if (verb.names_itself) words.emplace_back(verb.name);
  if (!global.run_dir.empty()) words.insert(words.end(), {"--run-dir", global.run_dir});
  if (global.json) words.emplace_back("--json");
  if (global.verbose) words.emplace_back("--verbose");
  if (global.no_daemon) words.emplace_back("--no-daemon");
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_beside(verb.program, words);
}

}  // namespace sluice::cli
