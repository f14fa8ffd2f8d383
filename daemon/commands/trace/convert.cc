// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/suggest.h"
#include "commands/trace/events.h"
#include "commands/trace/lines.h"
#include "commands/trace/strace_line.h"

namespace sluice::trace {

namespace {

constexpr std::size_t looked_at_bytes = 4096;

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (auto const& row : format_table) all.emplace_back(row.name);
  return all;
}

format_row const& row(std::string_view name) {
  return *std::find_if(std::begin(format_table), std::end(format_table),
                       [name](format_row const& r) { return r.name == name; });
}

/// The first line that says something: no comment, not empty.
std::string_view telling_line(std::string_view begin) {
  while (!begin.empty()) {
    auto const end = begin.find('\n');
    std::string_view const line = trimmed(begin.substr(0, end));
    if (!line.empty() && line != "\r" && !line.starts_with('#')) return line;
    if (end == begin.npos) break;
    begin.remove_prefix(end + 1);
  }
  return {};
}

bool is_columns(std::string_view line) {
  std::vector<std::string_view> cells;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!split_cells(line, cells)) return false;
  return std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
    return cell == "time_s" || cell == "time" || cell == "unix_s";
  });
}

std::string bytes_of(std::string const& path) {
  input from(path);  // refuses what cannot be opened
  std::string begin(looked_at_bytes, '\0');
  from.stream().read(begin.data(), looked_at_bytes);
  begin.resize(static_cast<std::size_t>(from.stream().gcount()));
  return begin;
}

void check_jobs_by(format_row const& format, convert_options const& options) {
  if (options.jobs_by.empty() || options.jobs_by == "file") return;
  std::string_view words = format.jobs_by;
  for (; !words.empty(); words.remove_prefix(std::min(words.find(' ') + 1, words.size()))) {
    if (words.substr(0, words.find(' ')) == options.jobs_by) return;
    if (words.find(' ') == words.npos) break;
  }
  throw usage_error(fmt::format("--jobs-by {}: {} has no such thing; it has: {}file",
                                shown(options.jobs_by), format.name,
                                format.jobs_by.empty() ? "" : std::string(format.jobs_by) + " "));
}

/// Sums counts into intervals that are longer, by a whole number.
trace with_interval(trace t, double interval_s, std::string const& name) {
  if (interval_s <= 0 || interval_s == t.interval_s) return t;
  double const times = std::round(interval_s / t.interval_s);
  if (times < 1 || std::abs(times * t.interval_s - interval_s) > 1e-6 * interval_s)
    throw usage_error(fmt::format("--interval: {} has intervals of {} s; {} s is no multiple", name,
                                  t.interval_s, interval_s));
  auto const each = static_cast<std::size_t>(times);
  trace out = t;
  out.interval_s = interval_s;
  out.counts.assign((t.counts.size() + each - 1) / each, std::vector<double>(t.columns.size()));
  for (std::size_t i = 0; i < t.counts.size(); ++i)
    for (std::size_t c = 0; c < t.columns.size(); ++c) out.counts[i / each][c] += t.counts[i][c];
  return out;
}

}  // namespace

format_row const& format_named(std::string const& name) {
  for (auto const& r : format_table)
    if (r.name == name) return r;
  throw usage_error(fmt::format("--from {}: no such format{}; there are: {}", shown(name),
                                did_you_mean(name, names()), fmt::join(names(), " ")));
}

format_row const* detect_in(std::string_view begin) {
  // a Darshan log begins with its version as text in 8 bytes, and a magic number
  if (begin.size() > 16 && begin[0] >= '2' && begin[0] <= '9' && begin[1] == '.' &&
      begin.substr(0, 16).find('\0') != begin.npos)
    return &row("darshan");
  std::string_view const line = telling_line(begin);
  strace_line parts;
  if (line.starts_with("fio version ")) return &row("iolog");
  if (line.starts_with('{') || line == "[" || line.starts_with("[{")) return &row("jsonl");
  if (line.find("stats=") != line.npos || line.starts_with("job_stats:") ||
      line.starts_with("snapshot_time") || line.starts_with("- job_id:"))
    return &row("lustre");
  if (is_columns(line)) return &row("csv");
  if (line.starts_with("strace: ") || (parse(line, parts) == nullptr && parts.unix_s != 0) ||
      line.find("resumed>") != line.npos)
    return &row("strace");
  return nullptr;
}

format_row const& detect_format(std::string const& path) {
  if (path == "-") throw usage_error("standard input: say what it is with --from FORMAT");
  format_row const* const found = detect_in(bytes_of(path));
  if (found == nullptr)
    throw usage_error(fmt::format("{}:1: of no known format; say it with --from: {}", path,
                                  fmt::join(names(), " ")));
  return *found;
}

trace from_csv(files const& from, convert_options const& options) {
  if (!options.below.empty()) throw usage_error("--below: a CSV file names no files");
  grid all;
  trace out;
  for (auto const& path : from) {
    trace const t = with_interval(read(path), options.interval_s, path);
    if (out.interval_s != 0 && t.interval_s != out.interval_s)
      throw usage_error(fmt::format("{}: intervals of {} s, where {} has {} s; give --interval",
                                    path, t.interval_s, from[0], out.interval_s));
    if (out.interval_s == 0) out = {t.start_unix_s, t.interval_s, {}, {}, t.facts};
    bool const by_file = options.jobs_by == "file" || (from.size() > 1 && options.job.empty());
    for (std::size_t i = 0; i < t.counts.size(); ++i)
      for (std::size_t c = 0; c < t.columns.size(); ++c) {
        std::string const job = !options.job.empty()        ? options.job
                                : !t.columns[c].job.empty() ? t.columns[c].job
                                : by_file                   ? job_of_file(path)
                                                            : "";
        if (char const* why =
                all.add(static_cast<std::int64_t>(i), job, t.columns[c].op, t.counts[i][c]))
          throw usage_error(fmt::format("{}: {}", path, why));
      }
  }
  trace joined = all.take(out.interval_s);
  joined.start_unix_s = from.size() == 1 ? out.start_unix_s : 0;
  joined.facts = out.facts;
  return joined;
}

trace convert(format_row const& format, files const& from, convert_options const& options) {
  check_jobs_by(format, options);
  if (char const* why = refuse_name(options.job))
    throw usage_error(fmt::format("--job: {} {}", shown(options.job), why));
  if (!options.job.empty() && !options.jobs_by.empty())
    throw usage_error("--job and --jobs-by: give one of them");
  return format.convert(from, options);
}

}  // namespace sluice::trace
