// SPDX-License-Identifier: Apache-2.0
#include "segment/small_why.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include "base/quantity.h"
#include "core/gathering.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

constexpr char const* not_reached = "no process could be limited";

struct counter_words {
  char const* key;  // of small.def
  char const* of_writes;
  char const* of_reads;
};
constexpr counter_words refusal_words[] = {
    {"refused_shared", "others may share the file", "others may share the file"},
    {"refused_kind",
     "it is no plain file, is open with O_SYNC, O_DIRECT or the like, or is on a file system that "
     "does not fit; or files are limited (ulimit -f), or the program was linked with liburing or "
     "libaio, or another library has a read or write of its own",
     "it is no plain file, or is open for writing, with O_DIRECT or the like; or the program was "
     "linked with liburing or libaio, or another library has a read or write of its own"},
    {"refused_lease", "nobody could hold a lease", "nobody could hold a lease"}};
constexpr counter_words ending_words[] = {
    {"ended_slow", "they came too slowly", ""},
    {"ended_asked", "too few came between the calls that needed them written",
     "too few came before another call on the file"},
    {"ended_memory", "they came from memory that libc may unmap",
     "they went to memory that libc may unmap"}};

/// A daemon may have told them, so nothing is taken for granted.
std::uint64_t count(json const& counted, char const* key) {
  if (!counted.is_object()) return 0;
  auto const at = counted.find(key);
  bool const is_count = at != counted.end() && at->is_number_integer() && *at >= 0;
  return is_count ? at->get<std::uint64_t>() : 0;
}

std::string times(std::uint64_t n) { return n == 1 ? "once" : fmt::format("{} times", n); }

std::string asked_in_vain(std::uint64_t leases) {
  return leases == 1
             ? "a lease was asked for, but came too late or was ended at once"
             : fmt::format("{} leases were asked for, but came too late or were ended at once",
                           leases);
}

char const* words_of(counter_words const& w, small_calls_of kind) {
  return kind == small_calls_of::writes ? w.of_writes : w.of_reads;
}

/// Some may have waited, and the program ended before it could count them.
std::string not_counted(std::uint64_t leases, bool is_lost_with_program) {
  if (leases == 0) return "what waited was lost, as the program was killed";
  std::string const told = "the program was killed, and the keepers have written what waited";
  return told + (is_lost_with_program ? " on strict files; elsewhere it was lost" : "");
}

/// Nobody looked at a file: no habit was seen.
std::string why_no_habit(small_habit const& h, small_calls const& c) {
  if (c.own == 0 && c.others == 0) return fmt::format("nothing was seen to be {}", h.done);
  if (c.own == 0) return fmt::format("all was {} by other calls than {}(2)", h.done, h.call);
  if (c.timed == 0)
    return fmt::format(
        "nothing was {} in its directories, or too little for a sample of the calls to show",
        h.done);
  if (c.timed_and_small == 0 && c.timed_at_most == 0)
    return fmt::format("no {} was small enough ({} at most), by a sample of the calls", h.call,
                       size_words(h.most_bytes));
  if (c.timed_and_small == 0)
    return fmt::format(
        "no {} was below {}, and few or none had just that: larger ones are not taken", h.call,
        size_words(h.most_bytes));
  std::string const begins =
      fmt::format("it begins after {} small ones in a row on a file{}", h.in_a_row, h.but);
  if (c.own < h.in_a_row)
    return fmt::format("only {} {} made: {}", c.own, c.own == 1 ? "was" : "were", begins);
  return "none had the habit: " + begins;
}

}  // namespace

std::vector<std::string> refusals(json const& counted, small_calls_of kind) {
  std::vector<std::string> out;
  for (counter_words const& w : refusal_words)
    if (auto const n = count(counted, w.key); n != 0)
      out.push_back(fmt::format("{} {}: {}", n, n == 1 ? "look" : "looks", words_of(w, kind)));
  return out;
}

std::vector<std::string> endings(json const& counted, small_calls_of kind) {
  std::vector<std::string> out;
  for (counter_words const& w : ending_words)
    if (auto const n = count(counted, w.key); n != 0)
      out.push_back(fmt::format("ended {}, as {}", times(n), words_of(w, kind)));
  return out;
}

small_habit writes_habit(bool has_gathered, bool has_strict) {
  if (!has_gathered) return {"write", "written", core::small_write, core::strict_begin};
  return {"write",
          "written",
          core::most_piece,
          core::gather_begin,
          has_strict ? fmt::format(", and {} on a strict one", core::strict_begin) : "",
          small_calls_of::writes,
          true};
}

small_habit reads_habit() {
  return {"read",
          "read",
          core::small_read,
          core::gather_begin,
          fmt::format(" that has {} more", core::reads_to_come),
          small_calls_of::reads};
}

std::string why_none(json const& counted, small_habit const& habit, small_calls const& calls) {
  if (!calls.is_reached) return not_reached;
  auto parts = refusals(counted, habit.kind);
  std::uint64_t const leases = count(counted, "leases");
  bool const may_come = calls.is_running && (leases != 0 || calls.own >= habit.in_a_row);
  if (parts.empty() && may_come) return "nothing has come of it yet";
  if (!calls.is_running && count(counted, "held") > count(counted, "let_go"))
    parts.push_back(not_counted(leases, habit.is_lost_with_program));
  else if (!calls.is_running && leases > count(counted, "refused_lease"))
    parts.push_back(asked_in_vain(leases));
  return parts.empty() ? why_no_habit(habit, calls) : fmt::format("{}", fmt::join(parts, "; "));
}

std::string why_no_hints(json const& counted, bool is_reached) {
  if (!is_reached) return not_reached;
  std::string out;
  if (auto const n = count(counted, "cached"))
    out = times(n) + " nothing was to be read from the disk";
  if (auto const n = count(counted, "unpaid"))
    out += fmt::format("{}{} the limit had nothing to spare", out.empty() ? "" : "; ", times(n));
  return out.empty() ? "no small overwrites or strided reads were seen" : out;
}

}  // namespace sluice::segment
