// SPDX-License-Identifier: Apache-2.0
// Traces from parameters: a daily wave with noise, and bursts, scaled so that mean and peak are
// exactly those asked for. The same parameters and seed give the same trace on any machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "commands/trace/trace.h"

namespace sluice::trace {

struct parameter_row {
  std::string_view name, value, hint, help;
};
inline constexpr parameter_row parameter_table[] = {
#define PARAMETER(name, value, hint, help) {#name, value, hint, help},
#include "commands/trace/parameters.def"
};

struct preset_row {
  std::string_view name;  // with _ where the command line has -
  std::string_view title;
};
inline constexpr preset_row preset_table[] = {
#define PRESET(name, title) {#name, title},
#include "commands/trace/presets.def"
};

std::string command_name(preset_row const& preset);

/// What was given: values by the name of the parameter.
using given = std::map<std::string, std::string>;

/// `preset` may be empty. Throws a usage error that names the parameter.
trace generate(std::string const& preset, given const& values);

}  // namespace sluice::trace
