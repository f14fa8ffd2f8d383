// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/order_rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/report.h"
#include "segment/jobs.h"
#include "segment/journal_row.h"
#include "segment/mapping.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;
using segment::age_s;

constexpr std::size_t most_open = 4096;  // descriptors looked at

std::string error_text(int error) { return error == 0 ? std::string() : std::strerror(error); }

/// What stages counted, by what it means for an fsync.
order_row fsync_row(segment::order_job const& look) {
  order_row native = order_row::object();
  order_row out = {{"journal", look.logged}, {"home", look.synced}};
  for (unsigned i = 0; i < look.counts.size(); ++i) {
    auto const what = static_cast<abi::order_count>(i);
    bool const is_mark = what == abi::order_count::marked || what == abi::order_count::mark_failed;
    if (what == abi::order_count::answered)
      out["answered"] = look.counts[i];
    else if (!is_mark)
      native[abi::order_count_names[i]] = look.counts[i];
  }
  out["native"] = native;
  return out;
}

/// Barriers that are outstanding, of each kind of stream that the job has.
order_row stream_rows(segment::order_job const& look) {
  static constexpr char const* names[] = {"process", "job", "thread", "path"};
  order_row rows = order_row::object();
  for (unsigned i = 0; i < look.barriers.size(); ++i)
    if (look.has_stream[i] || look.barriers[i] != 0) rows[names[i]] = look.barriers[i];
  return rows;
}

std::uint64_t count_of(segment::order_job const& look, abi::order_count what) {
  return look.counts[static_cast<unsigned>(what)];
}

using names = std::map<std::pair<std::uint64_t, std::uint64_t>, std::string>;

void add_names(std::uint32_t pid, names& to, std::size_t& looked) {
  std::error_code failed;
  for (auto at = fs::directory_iterator(fmt::format("/proc/{}/fd", pid), failed);
       !failed && at != fs::directory_iterator() && looked < most_open; at.increment(failed)) {
    ++looked;
    struct statx st = {};
    std::error_code gone;
    // As far as the kernel knows: a user's server may be asked in vain.
    constexpr int unasked = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
    if (statx(AT_FDCWD, at->path().c_str(), unasked, STATX_TYPE | STATX_INO, &st) != 0) continue;
    if (!S_ISREG(st.stx_mode)) continue;
    std::uint64_t const device = std::uint64_t{st.stx_dev_major} << 32 | st.stx_dev_minor;
    std::string const name = fs::read_symlink(at->path(), gone);
    if (!gone) to.try_emplace({device, st.stx_ino}, printable(name));
  }
}

/// Of the files that the job has open.
names open_names(std::string const& segment_path, uid_t uid) {
  names out;
  std::size_t looked = 0;
  try {
    auto const s = segment::mapping::open(segment_path, uid);
    for (auto const& process : segment::live_processes(*s, uid))
      if (process.pid != 0) add_names(process.pid, out, looked);
  } catch (error const&) {
    // Its files have numbers then.
  }
  return out;
}

// ---- for people ----

std::string text(order_row const& row, char const* key) { return row[key].get<std::string>(); }
std::uint64_t number(order_row const& row, char const* key) {
  return row[key].get<std::uint64_t>();
}

std::string amount(order_row const& state) {
  std::uint64_t const files = number(state, "files"), bytes = number(state, "bytes");
  if (files == 0 && bytes == 0) return "-";
  return fmt::format("{}, {}", files, size_words(bytes));
}

std::string journal_lines(order_row const& log) {
  std::string const file = text(log, "file");
  std::string out = fmt::format("journal {}: {}", printable(file), printable(text(log, "state")));
  if (!text(log, "why").empty()) out += fmt::format(": {}", printable(text(log, "why")));
  if (!log.contains("room_bytes")) return out + "\n";
  out += fmt::format(", pid {}, generation {}, {} of {} used\n", number(log, "pid"),
                     number(log, "generation"), size_words(number(log, "used_bytes")),
                     size_words(number(log, "room_bytes")));
  out += fmt::format(
      "  {} batches, {} and {} each; {} requests by it, {} by syncing the file; {} "
      "checkpoints\n",
      number(log, "batches"), size_words(number(log, "batch_mean_bytes")),
      time_words(number(log, "batch_mean_ns")), number(log, "logged"), number(log, "synced"),
      number(log, "checkpoints"));
  out += fmt::format("  {} files have something in it\n", number(log["durable"], "files"));
  if (number(log, "voids") != 0)
    out +=
        fmt::format("  {} times void: a program had synced all by itself\n", number(log, "voids"));
  if (number(log, "kept_journals") != 0)
    out += fmt::format(
        "  {} beside it, named {}.kept-N, with what it had of files that were left as they are; "
        "see "
        "sluice-recover(1)\n",
        number(log, "kept_journals") == 1 ? "a journal lies" : "journals lie", printable(file));
  if (!text(log, "log_error").empty())
    out += fmt::format("  ERROR: the journal cannot be written: {}\n", text(log, "log_error"));
  if (!text(log, "home_error").empty())
    out += fmt::format("  ERROR: a disk refused what the journal has: {}; see sluice-recover(1)\n",
                       text(log, "home_error"));
  return out;
}

std::string job_details(order_row const& job) {
  std::string out = fmt::format(
      "  fsync: {} answered by the journal's daemon ({} through the journal, {} "
      "by syncing the file)\n",
      number(job["fsync"], "answered"), number(job["fsync"], "journal"),
      number(job["fsync"], "home"));
  out += "  streams, and their barriers under way:";
  for (auto const& [name, count] : job["streams"].items())
    out += fmt::format(" {} {},", name, count.get<std::uint64_t>());
  out.back() = '\n';
  std::string native;
  for (auto const& [reason, count] : job["fsync"]["native"].items())
    if (count != 0) native += fmt::format(" {} {},", reason, count.get<std::uint64_t>());
  if (!native.empty()) native.pop_back();
  out += fmt::format("  by the program itself:{}\n", native.empty() ? " none" : native);
  out += fmt::format("  marks: {}, {} could not be set\n", number(job["marks"], "set"),
                     number(job["marks"], "failed"));
  if (job["void"] == true)
    out += "  the journal is void for it: a program has synced all by itself\n";
  if (job["blind"] == true) out += "  all native: a process writes where nobody sees it\n";
  if (!text(job, "refused").empty())
    out += fmt::format("  ERROR: a disk refused what the journal has: {}\n", text(job, "refused"));
  if (!job.contains("files")) return out;
  for (auto const& file : job["files"])
    out += fmt::format(
        "  {:<44} {:>10}  {}\n", printable(text(file, "name")),
        file["all"] == true ? std::string("all") : size_words(number(file, "open_bytes")),
        text(file, "states"));
  if (number(job, "more_files") != 0)
    out += fmt::format("  and {} more files\n", number(job, "more_files"));
  return out;
}

}  // namespace

std::string user_name(uid_t uid) {
  passwd const* const entry = getpwuid(uid);
  return entry == nullptr ? std::to_string(uid) : std::string(entry->pw_name);
}

order_row order_job_row(std::string const& job, segment::order_job const& look) {
  std::uint64_t open_files = 0, open_bytes = 0, asked = 0, asked_bytes = 0, logged = 0;
  for (auto const& f : look.files) {
    (f.is_asked ? asked : open_files) += f.is_asked || f.is_noted;
    (f.is_asked ? asked_bytes : open_bytes) += f.noted_bytes;
    logged += f.is_logged;
  }
  return {{"job", job},
          {"user", user_name(look.uid)},
          {"uid", look.uid},
          {"served", look.is_served},
          {"generation", look.generation},
          {"open", {{"files", open_files}, {"bytes", open_bytes}}},
          {"closed",
           {{"files", asked},
            {"bytes", asked_bytes},
            {"requests", look.requests},
            {"oldest_s", age_s(look.asked_since_ns)}}},
          {"durable", {{"files", logged}}},
          {"streams", stream_rows(look)},
          {"fsync", fsync_row(look)},
          {"marks",
           {{"set", count_of(look, abi::order_count::marked)},
            {"failed", count_of(look, abi::order_count::mark_failed)}}},
          {"void", look.is_void},
          {"blind", look.is_blind},
          {"refused", error_text(look.refused)}};
}

order_row order_file_rows(std::string const& segment_path, segment::order_job const& look) {
  names const known = open_names(segment_path, look.uid);
  auto files = look.files;
  std::stable_sort(files.begin(), files.end(),
                   [](auto const& a, auto const& b) { return a.noted_bytes > b.noted_bytes; });
  order_row rows = order_row::array();
  for (auto const& f : files) {
    std::string states;
    auto const add = [&](bool is, char const* word) {
      if (is) states += (states.empty() ? "" : " ") + std::string(word);
    };
    add(f.is_noted && !f.is_asked, "open");
    add(f.is_asked, "closed");
    add(f.is_logged, "durable");
    add(f.is_native, "native");
    auto const at = known.find({f.device, f.inode});
    rows.push_back(
        {{"name", at != known.end() ? at->second
                                    : fmt::format("device {}:{} inode {}", f.device >> 32,
                                                  f.device & 0xffffffff, f.inode)},
         {"open_bytes", f.noted_bytes},
         {"all", f.is_all_noted},
         {"states", states}});
  }
  return rows;
}

std::string order_table(order_row const& picture, bool in_full) {
  std::string out;
  for (auto const& journal : picture["journals"]) out += journal_lines(journal);
  if (picture["jobs"].empty()) return out;
  out +=
      fmt::format("{:<22} {:<10} {:>18} {:>7} {:>8}\n", "job", "user", "open", "closed", "durable");
  for (auto const& job : picture["jobs"]) {
    out += fmt::format("{:<22} {:<10} {:>18} {:>7} {:>8}{}\n", printable(text(job, "job")),
                       printable(text(job, "user")), amount(job["open"]),
                       number(job["closed"], "requests"), number(job["durable"], "files"),
                       job["served"] == true ? "" : "  no journal: native");
    if (job.contains("journal") && !job["journal"].is_null())
      out += "  " + journal_lines(job["journal"]);
    if (in_full) out += job_details(job);
  }
  return out;
}

}  // namespace sluice::cli
