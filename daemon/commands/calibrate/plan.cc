// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "commands/calibrate/metadata.h"
#include "core/cost_table.h"

namespace sluice::calibrate {

namespace {

using sizes = std::vector<std::uint64_t>;

constexpr std::uint64_t kib = 1024;
constexpr unsigned short_rounds = 2, long_rounds = 3;
/// A file should have at least so many places for a size.
constexpr std::uint64_t least_places = 8;

sizes curve_sizes(bool is_short, bool is_aligned) {
  if (is_short && !is_aligned) return {4 * kib, 64 * kib, 1024 * kib};
  if (is_short) return {512, 4 * kib, 16 * kib, 64 * kib, 256 * kib, 1024 * kib, 4096 * kib};
  sizes out;
  for (unsigned i = 0; i < core::cost_points; ++i) out.push_back(core::cost_point_bytes(i));
  return out;
}

std::string words_of(work const& w) { return fmt::format("{} {}", w.op, size_words(w.bytes)); }

/// Unaligned writes go through the page cache, as those of programs do: what they cost is the read
/// of the pages that they touch in part.
cache way_of(work const& w, abilities const& a) {
  if (!a.direct || (w.op == "write" && !w.is_aligned)) return cache::cold;
  bool const whole_pages = w.is_aligned && w.bytes % page_bytes == 0;
  return whole_pages || a.direct_sectors ? cache::direct : cache::cold;
}

void add_curves(std::vector<step>& out, abilities const& a) {
  for (char const* op : {"read", "write"})
    for (bool const aligned : {true, false})
      for (std::uint64_t const bytes : curve_sizes(a.is_short, aligned)) {
        if (bytes * least_places > a.file_bytes) continue;
        step s;
        s.kind = step_kind::point;
        s.works = {{op, bytes, motion::random, cache::direct, writing::overwrite, aligned}};
        s.works[0].by = way_of(s.works[0], a);
        s.id = fmt::format("{}/{}/{}", op, aligned ? "aligned" : "unaligned", bytes);
        s.say = words_of(s.works[0]) + (aligned ? "" : ", unaligned");
        s.rounds = a.is_short ? short_rounds : long_rounds;
        out.push_back(s);
      }
}

struct side_row {
  char const* kind;  // of policy::side_kinds()
  work what;         // the size is filled in
  bool in_short;
};

side_row const side_rows[] = {
    {"sequential_read", {"read", 0, motion::sequential}, true},
    {"sequential_write", {"write", 0, motion::sequential}, true},
    {"append", {"write", 0, motion::sequential, cache::direct, writing::append}, true},
    {"new_file", {"write", 0, motion::sequential, cache::direct, writing::new_file}, false},
    {"buffered_read", {"read", 0, motion::random, cache::cold}, false},
    {"buffered_overwrite", {"write", 0, motion::random, cache::cold}, false},
    {"buffered_append", {"write", 0, motion::sequential, cache::cold, writing::append}, false},
    {"direct_unaligned_write",
     {"write", 0, motion::random, cache::direct, writing::overwrite, false},
     false},
};

void add_sides(std::vector<step>& out, abilities const& a) {
  for (side_row const& row : side_rows) {
    if (a.is_short && !row.in_short) continue;
    if (row.what.by == cache::direct && !row.what.is_aligned && !a.direct_sectors) continue;
    for (std::uint64_t const bytes :
         a.is_short ? sizes{64 * kib} : sizes{4 * kib, 64 * kib, 1024 * kib}) {
      step s;
      s.kind = step_kind::side;
      s.works = {row.what};
      s.works[0].bytes = bytes;
      if (!a.direct) s.works[0].by = cache::cold;
      s.side_kind = row.kind;
      s.id = fmt::format("{}/{}", row.kind, bytes);
      s.say = s.id;
      std::replace(s.say.begin(), s.say.end(), '_', ' ');
      s.rounds = a.is_short ? short_rounds : long_rounds;
      out.push_back(s);
    }
  }
}

void add_ops(std::vector<step>& out, abilities const& a) {
  for (auto const& name : metadata_ops()) {
    step s;
    s.kind = step_kind::op;
    s.works = {{name}};
    s.id = "op/" + name;
    s.say = name;
    s.rounds = a.is_short ? short_rounds : long_rounds;
    out.push_back(s);
  }
}

work io(char const* op, std::uint64_t bytes, abilities const& a) {
  return {op, bytes, motion::random, a.direct ? cache::direct : cache::cold};
}

void add_grid(std::vector<step>& out, abilities const& a) {
  sizes const at = a.is_short ? sizes{4 * kib, 64 * kib} : sizes{4 * kib, 64 * kib, 256 * kib};
  std::vector<double> const mixtures = a.is_short ? std::vector{0.5} : std::vector{0.75, 0.5, 0.25};
  auto const add = [&](double readers, std::uint64_t r, std::uint64_t w) {
    step s;
    s.kind = step_kind::grid;
    s.works = {io("read", r, a), io("write", w, a)};
    s.readers = readers;
    s.id = fmt::format("grid/{:.0f}/{}/{}", readers * 100, r, w);
    s.say =
        fmt::format("{:.0f} % read {}, else write {}", readers * 100, size_words(r), size_words(w));
    s.rounds = a.is_short ? 1 : long_rounds;
    out.push_back(s);
  };
  for (std::uint64_t const bytes : at) {
    add(1, bytes, bytes);
    add(0, bytes, bytes);
    for (double const readers : mixtures)
      for (std::uint64_t const other : at) add(readers, bytes, other);
  }
}

struct pair_row {
  char const* kind;  // as in a cost file
  std::uint64_t bytes[2];
  bool in_short;
};

constexpr pair_row pair_rows[] = {
    {"rr", {4 * kib, 64 * kib}, true},  {"rr", {4 * kib, 256 * kib}, false},
    {"ww", {4 * kib, 64 * kib}, false}, {"ww", {64 * kib, 256 * kib}, false},
    {"rw", {4 * kib, 64 * kib}, true},  {"rw", {64 * kib, 4 * kib}, false},
};

void add_pairs(std::vector<step>& out, abilities const& a) {
  for (pair_row const& row : pair_rows) {
    if (a.is_short && !row.in_short) continue;
    step s;
    s.kind = step_kind::pair;
    for (unsigned i = 0; i < 2; ++i)
      s.works.push_back(io(row.kind[i] == 'r' ? "read" : "write", row.bytes[i], a));
    s.side_kind = row.kind;
    s.id = fmt::format("pair/{}/{}/{}", row.kind, row.bytes[0], row.bytes[1]);
    s.say = fmt::format("two tenants, {} and {}", words_of(s.works[0]), words_of(s.works[1]));
    out.push_back(s);
  }
}

}  // namespace

std::vector<step> plan_of(abilities const& a) {
  std::vector<step> out;
  add_curves(out, a);
  add_sides(out, a);
  add_ops(out, a);
  add_grid(out, a);
  add_pairs(out, a);
  return out;
}

std::vector<step> only(std::vector<step> plan, std::vector<std::string> const& words) {
  auto const is_wanted = [&](step const& s) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string const& word) { return s.id.starts_with(word); });
  };
  if (!words.empty()) std::erase_if(plan, [&](step const& s) { return !is_wanted(s); });
  return plan;
}

timing timing_of(abilities const& a) {
  constexpr std::int64_t ms = 1'000'000;
  timing t;
  t.ramp_ns = (a.is_short ? 60 : 150) * ms;
  t.probe_ns = (a.is_short ? 150 : 250) * ms;
  t.window_ns = (a.is_short ? 300 : 800) * ms;
  t.longest_ns = (a.is_short ? 1300 : 4000) * ms;
  t.least_requests = a.is_short ? 3 : 5;
  t.first_threads = 4;
  t.most_threads = a.is_short ? 64 : 128;
  t.climbs_once = a.is_short;
  return t;
}

timing timing_of(step const& s, timing const& t) {
  timing out = t;
  if (s.kind != step_kind::op) return out;
  constexpr std::int64_t parts = 3;
  out.ramp_ns /= parts;
  out.probe_ns /= parts;
  out.window_ns /= parts;
  return out;
}

double expected_s(step const& s, unsigned round, timing const& all) {
  constexpr double probes = 2.5;  // until more threads do not help
  constexpr double start_s = 0.02;
  timing const t = timing_of(s, all);
  bool const is_alone = s.kind != step_kind::grid && s.kind != step_kind::pair;
  bool const climbs = round == 0 && is_alone && !t.climbs_once;
  double const once_s = start_s + static_cast<double>(t.ramp_ns) / 1e9;
  double const window_s = static_cast<double>(t.window_ns) / 1e9;
  double const probe_s = static_cast<double>(t.probe_ns) / 1e9;
  return once_s + window_s + (climbs ? probes * (once_s + probe_s) : 0);
}

std::vector<step> drift_plan(abilities const& a) {
  std::vector<step> out;
  for (step const& s : plan_of(a))
    if (s.id == "read/aligned/4096" || s.id == "write/aligned/4096" || s.id == "read/aligned/65536")
      out.push_back(s);
  return out;
}

}  // namespace sluice::calibrate
