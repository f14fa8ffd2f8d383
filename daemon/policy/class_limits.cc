// SPDX-License-Identifier: Apache-2.0
#include "policy/class_limits.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "policy/background.h"

namespace sluice::policy {

namespace {

place where_it_says(std::string const& path) {
  std::string plain = std::filesystem::path(path).lexically_normal();
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return {.path = std::move(plain)};
}

/// Where the words say no place, the file and the class are told.
void check_class_limits(site const& s, std::string const& qos_class, std::string const& file,
                        file_system const& files) {
  try {
    compile(input_of(s, qos_class), files);
  } catch (error const& e) {
    std::string const why = e.what();
    if (e.status() != exit_usage || why.starts_with(file)) throw;
    throw usage_error(qos_class.empty() ? fmt::format("{}: {}", file, why)
                                        : fmt::format("{}: class {}: {}", file, qos_class, why));
  }
}

}  // namespace

channel_spec granted_channel(supply const& of) {
  channel_spec c;
  c.name = of.name();
  c.origin = "granted by sluiced";
  c.ops = core::ops_of_selector(of.resource);
  c.amount.unit = of.unit;
  c.target = of.target;
  c.outermost = true;
  return c;
}

compile_input input_of(site const& s, std::string const& qos_class) {
  compile_input input;
  input.targets = s.targets;
  input.roles = s.roles;
  input.channels = channels_of(s, qos_class);
  input.backgrounds = backgrounds_of(s, qos_class);
  add_background_channels(input.backgrounds, input.channels);
  return input;
}

file_system as_written() { return {{}, where_it_says}; }

file_system as_found() {
  return {{}, [](std::string const& path) {
            try {
              return find_place(path);
            } catch (error const&) {
              return where_it_says(path);
            }
          }};
}

void check_targets(site const& s, file_system const& files) {
  compile_input input;
  input.targets = s.targets;
  compile(input, files);
}

void check_classes(site const& s, std::string const& file, file_system const& files) {
  check_class_limits(s, "", file, files);
  for (auto const& c : s.classes) check_class_limits(s, c.name, file, files);
}

}  // namespace sluice::policy
