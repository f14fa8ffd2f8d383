// SPDX-License-Identifier: Apache-2.0
// sluice keys: makes and admits keys of daemons. sluiced does it, for the command carries no
// ZeroMQ.
#include "cli/beside.h"
#include "cli/options.h"

namespace sluice::cli {

int keys_verb(std::vector<std::string> const& arguments) {
  std::vector<std::string> words = {"keys"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_beside("sluiced", words);
}

}  // namespace sluice::cli
