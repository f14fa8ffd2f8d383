// SPDX-License-Identifier: Apache-2.0
// What a program of ours says on standard error. That nobody can read it (a full disk, a pipe that
// nobody empties, a closed descriptor) is no error: what we do may not depend on it.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace sluice {

template <class... Arguments>
void on_stderr(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  std::string const said = fmt::format(text, std::forward<Arguments>(arguments)...);
  std::fwrite(said.data(), 1, said.size(), stderr);
}

}  // namespace sluice
