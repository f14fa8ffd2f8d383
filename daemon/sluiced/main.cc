// SPDX-License-Identifier: Apache-2.0
// sluiced: one binary, its role by flag.

#include <cstdio>
#include <string_view>

#include "base/error.h"
#include "base/program.h"
#include "runtime/command_line.h"
#include "sluiced/daemon.h"
#include "wire/keys.h"

namespace {

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "keys")
    return sluice::wire::keys_main(argc - 1, argv + 1);
  auto const line = sluice::runtime::parse_command_line(argc, argv);
  return line.end ? *line.end : sluice::sluiced::run_daemon(line);
}

}  // namespace

int main(int argc, char** argv) {
  return sluice::guarded("sluiced", [&] { return run(argc, argv); });
}
