// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/epoch_rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/report.h"
#include "segment/journal_row.h"

namespace sluice::cli {

order_row gate_row(std::string const& job, job_look const& look) {
  order_row out = {
      {"job", job}, {"user", user_name(look.uid)}, {"uid", look.uid}, {"known", look.is_known}};
  for (std::size_t i = 0; i < look.counts.size(); ++i)
    out[abi::after_count_names[i]] = look.counts[i];
  out["no_slot"] = look.no_slot;
  out["waited_s"] = static_cast<double>(look.waited_ns) / 1e9;
  out["reason"] = look.reason;
  order_row waits = order_row::array();
  for (auto const& w : look.waits)
    waits.push_back({{"pid", w.pid}, {"since_s", segment::age_s(w.since_ns)}, {"for", w.whom}});
  out["waiting"] = std::move(waits);
  return out;
}

std::string gate_table(order_row const& rows) {
  std::string out;
  for (auto const& row : rows) {
    auto const number = [&](char const* key) { return row[key].get<std::uint64_t>(); };
    std::uint64_t const shut = number("refused") + number("silent") + number("unknown") +
                               row.value("no_slot", std::uint64_t{0});
    out += fmt::format(
        "gates of {}: {} opened, {} stayed shut, {} waiting, {:.1f} s waited{}\n",
        printable(row["job"].get<std::string>()), number("opened"), shut, row["waiting"].size(),
        row["waited_s"].get<double>(),
        row["known"] == true ? "" : "; the cluster does not know yet that this node has it");
    for (auto const& w : row["waiting"]) {
      auto const whom = w["for"].get<std::string>();
      out += fmt::format("  pid {} waits for {}, {:.1f} s\n", w["pid"].get<std::uint32_t>(),
                         whom.empty() ? "an answer" : printable(whom), w["since_s"].get<double>());
    }
    if (!row["reason"].get<std::string>().empty())
      out += fmt::format("  reason of the last one that stayed shut: {}\n",
                         printable(row["reason"].get<std::string>()));
  }
  return out;
}

}  // namespace sluice::cli
