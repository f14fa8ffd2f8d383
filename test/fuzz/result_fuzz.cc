// SPDX-License-Identifier: Apache-2.0
// Any text may be a result file: it is read, or refused with a usage error that has file and line;
// what was read can be shown in every form, and none of it becomes an element of the page.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "commands/report/page.h"
#include "commands/report/text.h"

namespace {

std::size_t count(std::string const& in, std::string_view what) {
  std::size_t n = 0;
  for (auto at = in.find(what); at != in.npos; at = in.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    auto const r = sluice::report::parse_result(text, "fuzz");
    std::string const page = sluice::report::page_of({r}, "nonce");
    if (count(page, "<script") != 1 || count(page, "<style") != 1) std::abort();
    sluice::report::page_of({r, r}, "nonce");
    sluice::report::text_of({r}, 80);
    sluice::report::summary_of({r});
  } catch (sluice::error const& e) {
    if (e.status() != sluice::exit_usage) std::abort();
    if (!std::string_view(e.what()).starts_with("fuzz:")) std::abort();
  }
  return 0;
}
