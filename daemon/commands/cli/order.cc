// SPDX-License-Identifier: Apache-2.0
// sluice order: what became of writes to durable targets, and how journals fare. It reads the areas
// of jobs, and the status of a journal that is one job's alone, as far as this user may read them;
// of the journals of a node its daemon tells, a user his own and an operator all.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/on_stderr.h"
#include "base/program.h"
#include "base/suggest.h"
#include "commands/cli/daemon.h"
#include "commands/cli/epoch_rows.h"
#include "commands/cli/job.h"
#include "commands/cli/order_rows.h"
#include "commands/cli/report.h"
#include "segment/journal_row.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_file_rows = 20;

/// `UID@NAME` is the folder of a job that a daemon made for another user.
std::string job_of(std::string const& folder) {
  auto const at = folder.find('@');
  return at == std::string::npos ? folder : folder.substr(at + 1);
}

bool is_meant(std::string const& wanted, std::string const& folder, order_row const& row) {
  std::string const job = job_of(folder);
  return wanted == folder || wanted == job ||
         wanted == fmt::format("{}@{}", row["user"].get<std::string>(), job);
}

struct found_jobs {
  order_row rows = order_row::array();
  order_row gates = order_row::array();
  std::vector<std::string> names;  // of all there are
};

/// Of a job with epochs, whether it has an order or not.
void look_at_gates(std::string const& segment_path, std::string const& folder,
                   std::string const& wanted, found_jobs& out) {
  auto const look = look_at(segment::after_path(segment_path));
  if (!look) return;
  order_row row = gate_row(job_of(folder), *look);
  out.names.push_back(row["job"]);
  if (wanted.empty() || is_meant(wanted, folder, row)) out.gates.push_back(std::move(row));
}

found_jobs look_at_jobs(global_options const& global, std::string const& wanted) {
  found_jobs out;
  std::set<std::string> seen;
  for (auto const& s : segments_in_reach(global)) {
    if (!seen.insert(s.path).second) continue;
    fs::path const folder = fs::path(s.path).parent_path();
    look_at_gates(s.path, folder.filename(), wanted, out);
    try {
      auto const look = segment::look_at_order(segment::order_path(s.path));
      if (!look) continue;
      order_row row = order_job_row(job_of(folder.filename()), *look);
      out.names.push_back(row["job"]);
      if (!wanted.empty() && !is_meant(wanted, folder.filename(), row)) continue;
      auto const log = segment::look_at_journal(segment::journal_status_path(folder));
      row["journal"] = log ? segment::journal_row(*log) : order_row();
      if (!wanted.empty()) {
        order_row files = order_file_rows(s.path, *look);
        std::size_t const more = files.size() > most_file_rows ? files.size() - most_file_rows : 0;
        if (!global.json && more != 0) files.erase(files.begin() + most_file_rows, files.end());
        row["files"] = std::move(files);
        row["more_files"] = global.json ? 0 : more;
      }
      out.rows.push_back(std::move(row));
    } catch (error const& e) {
      on_stderr("sluice: warning: {}\n", e.what());
    }
  }
  return out;
}

/// What is known of such a row, as far as it is said in the same kind of words.
void take_known(order_row& known, json const& said) {
  for (auto const& [key, value] : known.items()) {
    auto const at = said.find(key);
    if (at == said.end()) continue;
    if (value.is_object() && at->is_object()) take_known(value, *at);
    bool const is_same =
        (value.is_string() && at->is_string()) || (value.is_number() && at->is_number());
    if (is_same) value = *at;
  }
}

/// What the daemon of the node says of its journals.
order_row look_at_journals(global_options const& global) {
  order_row out = order_row::array();
  auto const search = find_daemon(global, patient_ms);
  warn_of(search);
  if (!search.found || !search.found->has_journal) return out;
  auto const answer = ask_all(*search.found, {{"verb", "hello"}, {"journals", true}}, "journals");
  for (auto const& said : answer.at("journals")) {
    if (!said.is_object()) continue;
    order_row row = {{"uid", 0}, {"file", ""}, {"state", ""}, {"why", ""}, {"deaths", 0}};
    if (said.contains("room_bytes")) row.update(segment::journal_row({}));
    take_known(row, said);
    out.push_back(std::move(row));
  }
  return out;
}

order_row take_picture(global_options const& global, std::string const& wanted) {
  found_jobs jobs = look_at_jobs(global, wanted);
  if (!wanted.empty() && jobs.rows.empty() && jobs.gates.empty())
    throw usage_error(fmt::format("no job {} with a durable target that you may look at{}", wanted,
                                  did_you_mean(wanted, jobs.names)));
  return {{"journals", look_at_journals(global)},
          {"jobs", std::move(jobs.rows)},
          {"gates", std::move(jobs.gates)}};
}

void print_picture(global_options const& global, order_options const& options,
                   order_row const& picture, bool is_one) {
  if (global.json) {
    fmt::print("{}", is_one ? dump(picture)
                            : picture.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    return;
  }
  if (picture["journals"].empty() && picture["jobs"].empty() && picture["gates"].empty())
    on_stderr("sluice: no journal, and no job with a durable target that you may look at\n");
  fmt::print("{}{}", order_table(picture, !options.job.empty()), gate_table(picture["gates"]));
}

}  // namespace

int order_verb(global_options const& global, order_options const& options) {
  bool const is_one = !options.watch && options.count == 0;
  bool const clears = !is_one && !global.json && isatty(STDOUT_FILENO) == 1;
  for (long printed = 0; is_one ? printed < 1 : options.count == 0 || printed < options.count;
       ++printed) {
    if (printed != 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
      if (!clears && !global.json) fmt::print("\n");
    }
    order_row picture;
    try {
      picture = take_picture(global, options.job);
    } catch (error const&) {
      if (printed != 0) return 0;  // the job that was watched has ended
      throw;
    }
    if (clears) fmt::print("\033[H\033[J");
    print_picture(global, options, picture, is_one);
    flush_output();
  }
  return 0;
}

}  // namespace sluice::cli
