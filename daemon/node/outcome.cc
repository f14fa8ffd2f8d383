// SPDX-License-Identifier: Apache-2.0
#include "node/outcome.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "calls.h"
#include "control/user_names.h"
#include "core/histogram.h"
#include "node/enforcer.h"
#include "policy/duration.h"
#include "segment/counted.h"

namespace sluice::node {

namespace {

namespace fs = std::filesystem;
using ordered = nlohmann::ordered_json;

constexpr std::size_t most_results = 512;
constexpr std::size_t told_waits = 3;

std::string results_dir(state const& s) { return s.jobs.run_dir() + "/results"; }

std::string size_text(double bytes) {
  static constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned i = 0;
  for (; bytes >= 1024 && i + 1 < std::size(units); ++i) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, units[i]);
}

std::string time_text(std::uint64_t ns) {
  return ns < 1'000'000'000 ? fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6)
                            : fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9);
}

/// "open 2.1 s, stat 1 s": what cost most.
std::string waits_text(segment::sums const& sums) {
  std::vector<std::pair<std::uint64_t, std::string_view>> waits;
  for (unsigned i = 0; i < call_count && i < sums.call.size(); ++i)
    if (sums.call[i].waited_ns != 0) waits.emplace_back(sums.call[i].waited_ns, call_table[i].name);
  std::sort(waits.rbegin(), waits.rend());
  std::string out;
  for (std::size_t i = 0; i < std::min(waits.size(), told_waits); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", waits[i].second, time_text(waits[i].first));
  return out;
}

/// The oldest go when there are too many.
void make_room(std::string const& dir) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code failed;
  for (auto const& entry : fs::directory_iterator(dir, failed))
    files.emplace_back(entry.last_write_time(failed), entry.path());
  if (files.size() < most_results) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + most_results <= files.size(); ++i)
    fs::remove(files[i].second, failed);
}

ordered result_of(state const& s, job const& j) {
  auto const& seat = *j.record.seat;
  std::int64_t const now_s = std::time(nullptr);
  ordered out = {{"version", 1}, {"kind", "run"}, {"job", j.record.name}};
  out["elapsed_s"] = static_cast<double>(now_s - seat.since_unix_s);
  out.update(segment::counted_json(j.memory(), j.processes));
  out["timeline"] = {
      {"start_unix_s", seat.since_unix_s}, {"interval_s", 1.0}, {"rows", ordered::array()}};
  out["jobs"] = {{{"job", j.record.name},
                  {"class", class_in_force(j, s.overrides.find(j.folder))},
                  {"user", control::user_name(j.record.uid)},
                  {"started_s", 0},
                  {"ended_s", now_s - seat.since_unix_s},
                  {"finished", true}}};
  ordered facts = {{"node", s.config.name}, {"nodes of the job", std::to_string(seat.nodes)}};
  out["facts"] = ordered::array();
  for (auto const& [title, text] : facts.items()) out["facts"].push_back({title, text});
  if (!seat.account.empty()) out["facts"].push_back({"account", seat.account});
  if (!seat.label.empty()) out["facts"].push_back({"scheduler's name", seat.label});
  out["facts"].push_back({"summary", outcome_line(s, j)});
  return out;
}

}  // namespace

std::string outcome_line(state const& s, job const& j) {
  segment::sums const sums = segment::sum(j.memory());
  std::uint64_t calls = 0, waited_ns = 0;
  double bytes = 0;
  for (auto const& c : sums.call) {
    calls += c.calls;
    waited_ns += c.waited_ns;
    bytes += static_cast<double>(c.bytes);
  }
  std::string const qos_class = class_in_force(j, s.overrides.find(j.folder));
  std::string out = fmt::format("job {} in class {}: {} calls, {}, ", j.record.name,
                                qos_class.empty() ? "(none)" : qos_class, calls, size_text(bytes));
  out += waited_ns == 0 ? "never waited"
                        : fmt::format("waited {}: {}", time_text(waited_ns), waits_text(sums));
  if (j.record.seat && j.record.seat->nodes > 1)
    out += fmt::format(" (on {}, one of {} nodes)", s.config.name, j.record.seat->nodes);
  if (!j.escapes.empty()) out += fmt::format("; {} processes were not metered", j.escapes.size());
  return out;
}

void keep_result(state const& s, job const& j) {
  if (!j.record.seat->is_metered) return;
  std::string const dir = results_dir(s), path = dir + "/" + j.record.name + ".json";
  mkdir(dir.c_str(), 0711);
  make_room(dir);
  std::string const fresh = dir + "/.new";
  std::remove(fresh.c_str());
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << result_of(s, j).dump(2, ' ', false, ordered::error_handler_t::replace) << '\n';
  file.close();
  if (!file || chmod(fresh.c_str(), 0600) != 0 ||
      (geteuid() == 0 && chown(fresh.c_str(), j.record.uid, j.record.gid) != 0) ||
      std::rename(fresh.c_str(), path.c_str()) != 0)
    s.services.log.warning("result cannot be kept", {{"path", path}});
}

}  // namespace sluice::node
