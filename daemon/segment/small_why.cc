// SPDX-License-Identifier: Apache-2.0
#include "segment/small_why.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/quantity.h"
#include "core/gathering.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

constexpr char const* not_reached = "no process could be limited";

std::uint64_t count(json const& counted, char const* key) {
  return counted.value(key, std::uint64_t{0});
}

std::string times(std::uint64_t n) { return n == 1 ? "once" : fmt::format("{} times", n); }

std::string asked_in_vain(std::uint64_t leases) {
  return leases == 1
             ? "a lease was asked for, and did not come in time or last"
             : fmt::format("{} leases were asked for, and none came in time or lasted", leases);
}

std::vector<std::string> refusals_of(json const& counted) {
  std::vector<std::string> out;
  for (auto const& r : small_refusals)
    if (auto const n = count(counted, r.key); n != 0)
      out.push_back(fmt::format("{} {}", times(n), r.means));
  return out;
}

/// Nobody looked at a file: no habit was seen.
std::string why_no_habit(small_habit const& h, small_calls const& c) {
  if (c.own == 0 && c.others == 0) return fmt::format("nothing was seen to be {}", h.done);
  if (c.own == 0) return fmt::format("all was {} by other calls than {}(2)", h.done, h.call);
  if (c.timed == 0)
    return fmt::format("nothing was {} in its directories, by a sample of the calls", h.done);
  if (c.timed_and_small == 0)
    return fmt::format("no {} was small enough, at most {}, by a sample of the calls", h.call,
                       size_words(h.most_bytes));
  std::string const begins =
      fmt::format("it begins after {} small ones in a row on a file{}", h.in_a_row, h.but);
  if (c.own < h.in_a_row)
    return fmt::format("only {} {} made: {}", c.own, c.own == 1 ? "was" : "were", begins);
  return "none had the habit: " + begins;
}

}  // namespace

small_habit writes_habit(bool has_gathered, bool has_strict) {
  if (!has_gathered) return {"write", "written", core::small_write, core::strict_begin};
  return {"write", "written", core::most_piece, core::gather_begin,
          has_strict ? fmt::format(", and {} on a strict one", core::strict_begin) : ""};
}

small_habit reads_habit() {
  return {"read", "read", core::small_read, core::gather_begin,
          fmt::format(" that has {} more", core::reads_to_come)};
}

std::string why_none(json const& counted, small_habit const& habit, small_calls const& calls) {
  if (!calls.is_reached) return not_reached;
  auto parts = refusals_of(counted);
  std::uint64_t const leases = count(counted, "leases");
  bool const may_come = calls.is_running && (leases != 0 || calls.own >= habit.in_a_row);
  if (parts.empty() && may_come) return "nothing has come of it yet";
  if (!calls.is_running && leases > count(counted, "refused_lease"))
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
  return out.empty() ? "no file on a disk or server was seen to be overwritten from its beginning, "
                       "or read at equal distances, in small pieces"
                     : out;
}

}  // namespace sluice::segment
