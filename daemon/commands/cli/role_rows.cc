// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/role_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "verbs/views/rows.h"

namespace sluice::cli {

namespace {

bool has_stream(nlohmann::json const& row, std::string const& supply) {
  for (auto const& s : row["streams"])
    if (s.value("supply", "") == supply) return true;
  return false;
}

}  // namespace

void role_rows::add(nlohmann::json& row, std::string const& job, segment::role_uses const& uses,
                    std::int64_t now_ns) {
  verbs::job_view view;
  for (auto const& use : uses.role) {
    if (use.name.empty() || use.calls == 0) continue;
    verbs::stream_view v;
    v.supply = "data:" + use.name;
    std::string const key = job + "\n" + use.name;
    counts const is = now_[key] = {use.read_bytes + use.written_bytes, use.waited_ns, now_ns};
    auto const was = before_.find(key);
    if (was == before_.end() || has_stream(row, v.supply)) continue;
    double const span_ns =
        static_cast<double>(std::max<std::int64_t>(now_ns - was->second.at_ns, 1));
    auto const per_s = [&](std::uint64_t now, std::uint64_t before) {
      return static_cast<double>(now - std::min(now, before)) * 1e9 / span_ns;
    };
    v.unit = core::unit_kind::bytes;
    v.granted = verbs::unbounded;
    v.served = static_cast<verbs::rate>(per_s(is.bytes, was->second.bytes) * 1000);
    double const blocked = std::min(per_s(is.waited_ns, was->second.waited_ns) / 1e9, 1.0);
    v.is_blocked = blocked > 0;
    v.blocked_ppm = static_cast<std::uint32_t>(blocked * 1e6);
    view.streams.push_back(std::move(v));
  }
  for (auto& stream : verbs::stream_rows(view)) row["streams"].push_back(std::move(stream));
}

void role_rows::end_look() {
  before_ = std::move(now_);
  now_.clear();
}

}  // namespace sluice::cli
