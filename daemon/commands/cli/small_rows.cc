// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/small_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/quantity.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"
#include "segment/small_look.h"
#include "segment/small_why.h"

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

/// The member of that name; null where there is none.
json const& member(json const& of, char const* key) {
  static json const nothing;
  if (!of.is_object()) return nothing;
  auto const at = of.find(key);
  return at == of.end() ? nothing : *at;
}

std::uint64_t count(json const& of, char const* key) {
  json const& n = member(of, key);
  return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0;
}

std::string text(json const& from) {
  return from.is_string() ? one_line(from.get<std::string>()) : std::string();
}

/// Of the counts that are not 0: "; N times …". `broken`: what a break is.
std::string times_of(json const& counts, char const* broken, segment::small_calls_of kind) {
  std::string out;
  if (auto const n = count(counts, "breaks")) out += fmt::format("; {} times {}", n, broken);
  for (auto const& words : {segment::endings(counts, kind), segment::refusals(counts, kind)})
    for (std::string const& one : words) out += "; " + one;
  return out;
}

/// Nothing came of it, and it says why.
std::string why_none(json const& counts, char const* taken) {
  return count(counts, taken) == 0 ? text(member(counts, "why_none")) : std::string();
}

/// What hints to the kernel came to.
std::string hints_line(json const& h) {
  if (!h.is_object()) return {};
  if (auto const why = why_none(h, "advised"); !why.empty())
    return fmt::format("  hints: nothing was read ahead: {}\n", why);
  std::string out = fmt::format("  hints: {} read ahead in {} requests",
                                size_words(count(h, "advised_bytes")), count(h, "advised"));
  if (auto const n = count(h, "cached")) out += fmt::format("; {} with nothing to read", n);
  if (auto const n = count(h, "unpaid"))
    out += fmt::format("; {} left out, as the limit had nothing to spare", n);
  return out + "\n";
}

/// What came of gathering small writes, and why no more were.
std::string gathered_line(json const& g) {
  if (!g.is_object()) return {};
  if (auto const why = why_none(g, "writes"); !why.empty())
    return fmt::format("  gathered: no small writes: {}\n", why);
  std::string out =
      fmt::format("  gathered: {} small writes, {} in {} to the kernel", count(g, "writes"),
                  size_words(count(g, "bytes")), count(g, "flushes"));
  if (auto const n = count(g, "failures")) out += fmt::format("; {} could not be written out", n);
  return out + times_of(g, "somebody opened a strict file", segment::small_calls_of::writes) + "\n";
}

/// What came of answering small reads from memory, and why no more were.
std::string buffered_line(json const& b) {
  if (!b.is_object()) return {};
  if (auto const why = why_none(b, "reads"); !why.empty())
    return fmt::format("  buffered: no small reads: {}\n", why);
  return fmt::format("  buffered: {} small reads, from {} that {} reads brought", count(b, "reads"),
                     size_words(count(b, "bytes")), count(b, "fills")) +
         times_of(b, "somebody opened the file for writing", segment::small_calls_of::reads) + "\n";
}

/// `strict, reads in /scratch; hints elsewhere`.
std::string modes_words(json const& targets) {
  std::string out;
  if (!targets.is_array()) return out;
  for (json const& row : targets) {
    std::string modes;
    for (json const& mode : member(row, "modes")) modes += (modes.empty() ? "" : ", ") + text(mode);
    if (modes.empty()) continue;
    std::string const where = text(member(row, "target"));
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", modes,
                       where.empty() ? "elsewhere" : "in " + where);
  }
  return out;
}

}  // namespace

void put_small(json& row, foreign<abi::segment> const& s, std::string const& segment_path,
               std::int64_t owner) {
  bool const is_running = !segment::live_processes(s, owner).empty();
  if (json small = segment::small_json(s, {segment_path, owner}, is_running); !small.is_null())
    row["small"] = std::move(small);
}

void put_small(json& row, open_job const& job) {
  put_small(row, *job.segment, segment::segment_path(job.run_dir, job.name), job.owner);
}

std::string counted_small_lines(json const& report) {
  return hints_line(member(report, "hints")) + gathered_line(member(report, "gathered")) +
         buffered_line(member(report, "buffered"));
}

std::string small_lines(json const& row) {
  json const& small = member(row, "small");
  if (small.is_null()) return {};
  std::string const modes = modes_words(member(small, "targets"));
  return (modes.empty() ? "" : fmt::format("  small I/O: {}\n", modes)) +
         counted_small_lines(small);
}

std::string small_words(json const& row) {
  json const& small = member(row, "small");
  if (small.is_null()) return {};
  json const &gathered = member(small, "gathered"), &buffered = member(small, "buffered");
  std::string out = "  small I/O: " + modes_words(member(small, "targets"));
  if (auto const calls = count(gathered, "writes") + count(buffered, "reads"); calls != 0)
    out += fmt::format(", {} small calls became {}", calls,
                       count(gathered, "flushes") + count(buffered, "fills"));
  return out;
}

}  // namespace sluice::cli
