// SPDX-License-Identifier: Apache-2.0
// Any text may be a cost file: it is read, or refused with a usage error that has file and line;
// what was read makes a sound table, and is written and read back as it was.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "policy/cost_file.h"

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    auto const c = sluice::policy::parse_cost_file(text, "fuzz");
    if (!(c.provisionable_vops <= c.max_vops)) std::abort();
    if (sluice::core::validate(sluice::policy::to_table(c)) != nullptr) std::abort();
    std::string const written = sluice::policy::cost_file_text(c);
    if (sluice::policy::cost_file_text(sluice::policy::parse_cost_file(written, "again")) !=
        written)
      std::abort();
  } catch (sluice::error const& e) {
    if (e.status() != sluice::exit_usage) std::abort();
    if (!std::string_view(e.what()).starts_with("fuzz:")) std::abort();
  }
  return 0;
}
