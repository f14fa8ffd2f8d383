// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/explain_job.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/hold_back.h"
#include "commands/cli/job.h"
#include "commands/cli/picture.h"
#include "commands/cli/report.h"
#include "commands/cli/small_rows.h"
#include "policy/resource.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

void print_stream(stream_row const& s) {
  core::unit_kind const unit = policy::unit_of_supply(s.supply);
  fmt::print("  {:<20} {:>10} {:>10} {:>10} {:>8} {:>7}\n", s.supply, rate_words(s.demand, unit),
             rate_words(s.grant, unit), rate_words(s.served, unit), short_number(s.waiting, unit),
             fmt::format("{:.0f}%", s.blocked * 100));
}

}  // namespace

int explain_by_daemon(global_options const& global, daemon_at const& daemon,
                      std::string const& job) {
  json answer = json(ask(daemon, {{"verb", "explain"}, {"job", job}}));
  if (auto const own = find_readable_job(global, job))
    put_roles(answer, segment::segment_path(own->run_dir, own->name), own->owner);
  if (global.json) {
    fmt::print("{}", dump(answer));
    return 0;
  }
  auto const streams = read_job(nlohmann::json(answer));
  fmt::print("job {}{}\n", streams.front().job,
             streams.front().qos_class.empty() ? "" : ", QoS class " + streams.front().qos_class);
  if (auto const lines = answer.find("lines"); lines != answer.end() && lines->is_array())
    for (auto const& line : *lines)
      if (line.is_string()) fmt::print("  {}\n", printable(line.get<std::string>()));
  fmt::print("{}{}{}", small_lines(answer), roles_table(answer), background_lines(answer));
  if (streams.front().supply.empty()) return 0;
  fmt::print("  {:<20} {:>10} {:>10} {:>10} {:>8} {:>7}\n", "supply", "demand", "grant", "served",
             "waiting", "blocked");
  for (auto const& s : streams) print_stream(s);
  return 0;
}

void print_capacities(global_options const& global, std::string const& job) {
  try {
    auto const search = find_daemon(global, hello_ms);
    if (!search.found) return;
    auto const answer = ask(*search.found, {{"verb", "explain"}, {"job", job}}, hello_ms);
    for (auto const& s : answer.value("streams", nlohmann::json::array()))
      if (auto const why = s.find("why"); why != s.end() && why->is_string())
        fmt::print("{}: {}\n", printable(s.value("supply", "")),
                   printable(why->get<std::string>()));
  } catch (std::exception const&) {
    // It has not this job, or is of another version: then there is nothing to tell.
  }
}

}  // namespace sluice::cli
