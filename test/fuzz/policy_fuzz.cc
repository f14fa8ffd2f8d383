// SPDX-License-Identifier: Apache-2.0
// Any text may be a policy: it compiles to a valid ruleset or is refused with a usage error,
// nothing else.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "policy/compile.h"
#include "policy/control.h"
#include "policy/policy.h"
#include "policy/supply.h"

namespace {

sluice::policy::place anywhere(std::string const& path) { return {path, 7, 2, 1}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    auto const site = sluice::policy::parse_policy(text, "fuzz");
    sluice::policy::warnings(site);
    sluice::policy::control_in_words(site);
    for (auto const& of : sluice::policy::supplies(site)) {
      auto const own = sluice::policy::own_part_of(site, of);
      auto const nodes = site.control.nodes.size();
      if (nodes != 0 && own.escrow + own.floor > of.capacity / nodes) std::abort();
    }
    sluice::policy::compile_input input;
    input.targets = site.targets;
    input.channels = site.channels;
    input.roles = site.roles;
    auto const mounts = sluice::parse_mounts(text);
    auto const compiled = sluice::policy::compile(input, {mounts, anywhere});
    if (sluice::core::validate(*compiled.rules) != nullptr) std::abort();
  } catch (sluice::error const& e) {
    if (e.status() != sluice::exit_usage) std::abort();
  }
  return 0;
}
