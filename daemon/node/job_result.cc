// SPDX-License-Identifier: Apache-2.0
#include "node/job_result.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/boot_id.h"
#include "base/duration.h"
#include "base/quantity.h"
#include "base/whole_file.h"
#include "calls.h"
#include "core/histogram.h"
#include "node/result_room.h"
#include "runtime/user_names.h"
#include "segment/counted.h"
#include "segment/role_look.h"
#include "segment/run_dir.h"
#include "segment/small_look.h"
#include "segment/sums.h"

namespace sluice::node {

namespace {

namespace fs = std::filesystem;
using ordered = nlohmann::ordered_json;

constexpr std::size_t told_waits = 3;
/// Parts that a job makes large. The largest are the first to be left out.
constexpr char const* parts_by_size[] = {"times", "sizes", "roles", "channels"};

/// "open 2.1 s, stat 1 s": what cost most.
std::string waits_text(segment::sums const& sums) {
  std::vector<std::pair<std::uint64_t, std::string_view>> waits;
  for (unsigned i = 0; i < call_count && i < sums.call.size(); ++i)
    if (sums.call[i].waited_ns != 0) waits.emplace_back(sums.call[i].waited_ns, call_table[i].name);
  std::sort(waits.rbegin(), waits.rend());
  std::string out;
  for (std::size_t i = 0; i < std::min(waits.size(), told_waits); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", waits[i].second, time_words(waits[i].first));
  return out;
}

/// A file that says nobody else may read it is ours.
void make_room(std::string const& dir, uid_t owner, owner_lookup const& owner_of) {
  std::vector<kept_result> kept;
  std::error_code failed;
  for (auto const& entry : fs::directory_iterator(dir, failed)) {
    std::string path = entry.path();
    struct stat st = {};
    if (lstat(path.c_str(), &st) != 0) continue;
    uid_t const whose = owner_by(owner_of, reader_of(path).value_or(geteuid()));
    std::int64_t const changed_ns = st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec;
    kept.push_back({std::move(path), whose, changed_ns, static_cast<std::size_t>(st.st_size)});
  }
  auto const gone = results_to_go(std::move(kept), owner);
  for (auto const& path : gone) fs::remove(path, failed);
}

ordered result_of(job const& j, result_terms const& told, std::string const& run_dir) {
  auto const& terms = *j.record.scheduler;
  std::int64_t const ended_s = elapsed_s(terms, dated_now(), boot_id());
  ordered out = {{"version", 1}, {"kind", "run"}, {"job", j.record.name}};
  out["elapsed_s"] = static_cast<double>(ended_s);
  segment::job_files const files = j.files(run_dir);
  out.update(
      segment::counted_json(j.memory(), j.processes, segment::small_targets_of(j.memory(), files)));
  if (ordered roles = segment::roles_json(files); !roles.is_null()) out["roles"] = std::move(roles);
  out["timeline"] = {
      {"start_unix_s", terms.since_unix_s}, {"interval_s", 1.0}, {"rows", ordered::array()}};
  out["jobs"] = {{{"job", j.record.name},
                  {"class", told.qos_class},
                  {"user", runtime::user_name(j.record.uid)},
                  {"started_s", 0},
                  {"ended_s", ended_s},
                  {"finished", true}}};
  ordered facts = {{"node", told.node}, {"nodes of the job", std::to_string(terms.nodes)}};
  out["facts"] = ordered::array();
  for (auto const& [title, text] : facts.items()) out["facts"].push_back({title, text});
  if (!terms.account.empty()) out["facts"].push_back({"account", terms.account});
  if (!terms.label.empty()) out["facts"].push_back({"scheduler's name", terms.label});
  out["facts"].push_back({"summary", outcome_line(j, told)});
  return out;
}

std::string text_of(ordered const& result) {
  return result.dump(2, ' ', false, ordered::error_handler_t::replace) + "\n";
}

/// Of names and paths alone. To write megabytes only to measure them would hold up the loop.
std::size_t bytes_of_texts(ordered const& in) {
  if (in.is_string()) return in.get_ref<std::string const&>().size();
  std::size_t sum = 0;
  if (in.is_structured())
    for (auto const& each : in) sum += bytes_of_texts(each);
  return sum;
}

/// The job's user can fill these parts with anything, and the loop writes them into memory.
std::string bounded_text(ordered result) {
  for (char const* part : parts_by_size) {
    if (bytes_of_texts(result) <= most_result_bytes)
      if (std::string text = text_of(result); text.size() <= most_result_bytes) return text;
    if (result.erase(part) != 0) result["facts"].push_back({"left out, for it is too large", part});
  }
  return text_of(result);
}

}  // namespace

std::string outcome_line(job const& j, result_terms const& terms) {
  segment::sums const sums = segment::sum(j.memory());
  std::uint64_t calls = 0, waited_ns = 0, bytes = 0;
  for (auto const& c : sums.call) {
    calls += c.calls;
    waited_ns += c.waited_ns;
    bytes += c.bytes;
  }
  std::string out =
      fmt::format("job {} in class {}: {} calls, {}, ", j.record.name,
                  terms.qos_class.empty() ? "(none)" : terms.qos_class, calls, size_words(bytes));
  out += waited_ns == 0 ? "never waited"
                        : fmt::format("waited {}: {}", time_words(waited_ns), waits_text(sums));
  if (j.record.scheduler && j.record.scheduler->nodes > 1)
    out += fmt::format(" (on {}, one of {} nodes)", terms.node, j.record.scheduler->nodes);
  if (!j.is_seen_last()) out += "; its last figures did not come in time";
  if (!j.escapes.empty()) out += fmt::format("; {} processes were not metered", j.escapes.size());
  return out;
}

std::int64_t elapsed_s(scheduler_terms const& terms, dated_moment now, std::string const& boot) {
  bool const is_of_this_boot = !boot.empty() && terms.boot == boot;
  double const span_s = is_of_this_boot ? now.boot_s - terms.since_boot_s
                                        : now.unix_s - static_cast<double>(terms.since_unix_s);
  return static_cast<std::int64_t>(std::max(span_s, 0.0));
}

std::string result_text(job const& j, result_terms const& terms, std::string const& run_dir) {
  return bounded_text(result_of(j, terms, run_dir));
}

void keep_result(job const& j, std::string const& text, std::string const& run_dir,
                 owner_lookup const& owner_of, runtime::logger& log) {
  std::string const dir = run_dir + "/results", path = dir + "/" + j.record.name + ".json";
  mkdir(dir.c_str(), 0711);
  file_terms whose;
  if (geteuid() == 0) whose.reader = j.record.uid;
  make_room(dir, owner_by(owner_of, j.record.uid), owner_of);
  if (!replace_file(path, text, whose)) log.warning("result cannot be kept", {{"path", path}});
}

}  // namespace sluice::node
