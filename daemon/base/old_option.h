// SPDX-License-Identifier: Apache-2.0
// An option under its old name. It works, is not shown in the help, and warns with its present
// name.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/on_stderr.h"

namespace sluice {

/// `was` and `is` begin with `--`; `program` begins the warning.
template <typename T>
void add_old_option(CLI::App& app, std::string const& program, std::string const& was,
                    std::string const& is, T& value) {
  // Not excludes(): the help of the present option would tell of the old one.
  app.add_option(was, value, "")->group("")->each([=, &app](std::string const&) {
    if (app.get_option(is)->count() != 0) throw CLI::ExcludesError(was, is);
    on_stderr("{}: warning: {} is called {} now\n", program, was, is);
  });
}

}  // namespace sluice
