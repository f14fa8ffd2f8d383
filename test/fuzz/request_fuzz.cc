// SPDX-License-Identifier: Apache-2.0
// Any packet on the local socket: it is refused with a sentence, or every field that a verb may
// fetch is of its type and within its bounds; and the answer is JSON that fits a packet.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "local/local.h"
#include "local/request.h"

namespace {

using namespace sluice;
using local::json;

void must(bool holds) {
  if (!holds) std::abort();
}

json answer(json const& request) {
  json out = {{"verb", local::text_of(request, "verb")}};
  if (auto const job = local::text_if(request, "job")) out["job"] = *job;
  if (auto const pid = local::whole_if(request, "pid", 1, 1 << 22)) {
    must(*pid >= 1 && *pid <= 1 << 22);
    out["pid"] = *pid;
  }
  out["all"] = local::flag_of(request, "all", false);
  local::page page(out, request);
  json const text = out["verb"];
  for (int i = 0; i < 300; ++i)
    if (!page.put("rows", [&] { return json{{"row", i}, {"text", text}}; })) break;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  auto const handle = [](local::peer const&, json const& request) { return answer(request); };
  std::string const text =
      local::answer_text(handle, {}, reinterpret_cast<char const*>(data), size, local::most_bytes);
  must(text.size() <= local::most_bytes);
  json const parsed = json::parse(text, nullptr, false);
  must(parsed.is_object() && (parsed.contains("error") || parsed.contains("next")));
  return 0;
}
