// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/paths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "abi/path_area.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/number.h"
#include "base/on_stderr.h"
#include "base/quantity.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t table_paths = 5;

unsigned whole(char const* option, std::string const& text, unsigned most) {
  unsigned value = 0;
  if (to_number(text, value) && value >= 1 && value <= most) return value;
  throw usage_error(
      fmt::format("{}: \"{}\" is not a whole number from 1 to {}", option, text, most));
}

struct path_use {
  std::string path;
  std::uint64_t calls = 0, over = 0, bytes = 0, waited_ns = 0, took_ns = 0;
};

/// Read, not mapped: whoever shortens the file meanwhile cannot harm us.
std::unique_ptr<abi::path_area> read_area(std::string const& path) {
  auto const file = open_foreign(path, O_RDONLY, any_owner);
  if (!file) return nullptr;
  descriptor const& fd = file.fd;
  auto area = std::make_unique<abi::path_area>();
  auto* const to = reinterpret_cast<char*>(area.get());
  std::size_t got = 0;
  while (got < sizeof *area) {
    ssize_t const n = pread(fd.get(), to + got, sizeof *area - got, static_cast<off_t>(got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  return abi::refuse_reason(*area, got) == nullptr ? std::move(area) : nullptr;
}

std::vector<path_use> uses_of(abi::path_area const& area) {
  std::map<std::string, path_use> by_path;
  auto const entry = std::make_unique<core::sketch_entry>();
  for (unsigned i = 0; i < abi::path_slots; ++i) {
    if (!core::read_slot(area.sketch, i, *entry)) continue;
    path_use& use = by_path[std::string(entry->text, entry->length)];
    use.calls += entry->calls;
    use.over += entry->over;
    use.bytes += entry->bytes;
    use.waited_ns += entry->waited_ns;
    use.took_ns += entry->took_ns;
  }
  std::vector<path_use> uses;
  for (auto& [path, use] : by_path) {
    use.path = path;
    uses.push_back(std::move(use));
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](path_use const& a, path_use const& b) { return a.calls > b.calls; });
  return uses;
}

/// Nothing in a name speaks to the terminal; what is not ASCII stays.
std::string without_controls(std::string path) {
  for (char& c : path)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return path;
}

}  // namespace

path_wish paths_wanted(run_options const& options) {
  unsigned const parts = whole("--paths-depth", options.paths_depth, core::most_head_parts);
  if (options.paths.empty()) return {};
  return {whole("--paths", options.paths.back(), abi::path_slots), parts};
}

void put_paths(json& report, std::string const& segment_path, unsigned rows) {
  auto const area = read_area(segment::paths_path(segment_path));
  if (area == nullptr) {
    on_stderr("sluice: warning: --paths: the job's directory has no area of paths\n");
    return;
  }
  auto const uses = uses_of(*area);
  std::uint64_t others = area->head.unnamed.load();
  json out = json::array();
  for (path_use const& use : uses) {
    if (out.size() < rows)
      out.push_back({{"path", use.path},
                     {"calls", use.calls},
                     {"over", use.over},
                     {"bytes", use.bytes},
                     {"waited_ns", use.waited_ns},
                     {"took_ns", use.took_ns}});
    else
      others += use.calls;
  }
  report["paths"] = std::move(out);
  report["paths_other_calls"] = others;
}

std::string paths_table(json const& report) {
  auto const paths = report.find("paths");
  if (paths == report.end() || paths->empty()) return {};
  std::string out = fmt::format("  {:>10} {:>10} {:>9} {:>9}  {}\n", "calls", "bytes", "waited",
                                "in calls", "directory");
  std::size_t shown = 0;
  for (auto const& p : *paths) {
    if (shown++ == table_paths) break;
    out += fmt::format("  {:>10} {:>10} {:>9} {:>9}  {}\n", p["calls"].get<std::uint64_t>(),
                       size_words(p["bytes"]), time_words(p["waited_ns"]), time_words(p["took_ns"]),
                       without_controls(p["path"].get<std::string>()));
  }
  if (paths->size() > table_paths)
    out += fmt::format("  and {} more directories; --report FILE has them\n",
                       paths->size() - table_paths);
  return out;
}

}  // namespace sluice::cli
