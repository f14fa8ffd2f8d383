// SPDX-License-Identifier: Apache-2.0
// The tables and the drawing of policies/README.md. Every scenario is recorded as text and read
// back before it is used, so what the algorithms see is what a file of it would give.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "compare.h"
#include "demand.h"
#include "demand_plot.h"
#include "demand_run.h"
#include "policies/allocate.h"

namespace sluice::sim {
namespace {

constexpr char const* scenarios[] = {"ramplong", "ramp", "rampslack", "mix", "light", "many"};
constexpr std::string_view begin_mark = "<!-- compare: begin -->\n";
constexpr std::string_view end_mark = "<!-- compare: end -->";
constexpr std::uint64_t seed = 1;

struct options {
  std::string readme, svg, record;
};

struct results {
  std::vector<std::string> algorithms;
  std::map<std::string, std::map<std::string, outcome>> by_demand, equal;  // [algorithm][scenario]
  std::map<std::string, std::uint64_t> digest;
  std::map<std::string, pair_outcome> pairs;
};

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    std::string const name = argv[i];
    std::string* const value = name == "--readme"   ? &o.readme
                               : name == "--svg"    ? &o.svg
                               : name == "--record" ? &o.record
                                                    : nullptr;
    if (value == nullptr || i + 1 == argc)
      throw std::runtime_error("usage: compare [--readme FILE] [--svg FILE] [--record DIR]");
    *value = argv[++i];
  }
  return o;
}

void write_file(std::string const& path, std::string const& text) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << text) || !out.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_whole(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw std::runtime_error("cannot read " + path);
  return text.str();
}

results run_all(std::string const& record) {
  results r;
  for (policies::algorithm const& a : policies::algorithms()) r.algorithms.emplace_back(a.name);
  for (char const* scenario : scenarios) {
    std::ostringstream recorded;
    write_demand(recorded, make_demand(scenario, seed));
    r.digest[scenario] = fnv1a(recorded.str());
    if (!record.empty()) write_file(record + "/" + scenario + ".demand", recorded.str());
    std::istringstream replayed(recorded.str());
    demand_series const series = read_demand(replayed);
    r.by_demand["ideal"][scenario] = run_demand(series, "ideal", node_split::by_demand);
    for (std::string const& name : r.algorithms) {
      r.by_demand[name][scenario] = run_demand(series, name, node_split::by_demand);
      r.equal[name][scenario] = run_demand(series, name, node_split::equal);
    }
  }
  for (std::string const& name : r.algorithms) r.pairs[name] = run_pairs(name);
  return r;
}

std::string seconds(double s) {
  return s < 1 ? fmt::format("{:.0f} ms", s * 1000) : fmt::format("{:.1f} s", s);
}

/// Median and worst of the returns from idle; how many ended before they got there.
std::string rise(outcome const& o) {
  if (o.rises == 0) return "–";
  std::string out;
  if (!o.rise_s.empty())
    out = seconds(o.rise_s[o.rise_s.size() / 2]) + " / " + seconds(o.rise_s.back());
  std::size_t const never = o.rises - o.rise_s.size();
  if (never > 0) out += fmt::format("{}{} of {} never", out.empty() ? "" : ", ", never, o.rises);
  return out;
}

std::string shortfall_table(std::vector<std::string> const& rows,
                            std::map<std::string, std::map<std::string, outcome>> const& all) {
  std::string out = "| |";
  for (char const* s : scenarios) out += fmt::format(" {} |", s);
  out += "\n|---|";
  for (std::size_t i = 0; i < std::size(scenarios); ++i) out += "---:|";
  for (std::string const& name : rows) {
    out += fmt::format("\n| {} |", name);
    for (char const* s : scenarios)
      out += fmt::format(" {:.1f} |", 100 * all.at(name).at(s).shortfall);
  }
  return out + "\n";
}

std::string causes_table(results const& r) {
  std::string out =
      "| | served: mix, light, many | wasted: mix, light, many | unfair: mix, light, many |"
      "\n|---|---|---|---|";
  auto rows = r.algorithms;
  rows.insert(rows.begin(), "ideal");
  for (std::string const& name : rows) {
    auto const& of = r.by_demand.at(name);
    out += fmt::format("\n| {} |", name);
    for (double outcome::*part : {&outcome::served, &outcome::wasted, &outcome::unfair})
      out += fmt::format(" {:.1f}, {:.1f}, {:.1f} |", 100 * (of.at("mix").*part),
                         100 * (of.at("light").*part), 100 * (of.at("many").*part));
  }
  return out + "\n";
}

std::string rise_table(results const& r) {
  std::string out = "| | ramplong | ramp | rampslack | mix |\n|---|---|---|---|---|";
  for (std::string const& name : r.algorithms) {
    out += fmt::format("\n| {} |", name);
    for (char const* s : {"ramplong", "ramp", "rampslack", "mix"})
      out += fmt::format(" {} |", rise(r.by_demand.at(name).at(s)));
  }
  return out + "\n";
}

std::string pairs_table(results const& r) {
  std::string out = "| | progress of the four | least | used: metadata, data |\n|---|---|---:|---|";
  for (std::string const& name : r.algorithms) {
    pair_outcome const& p = r.pairs.at(name);
    out += fmt::format("\n| {} | {:.1f}, {:.1f}, {:.1f}, {:.1f} | {:.1f} | {:.0f}, {:.0f} |", name,
                       100 * p.progress[0], 100 * p.progress[1], 100 * p.progress[2],
                       100 * p.progress[3],
                       100 * *std::min_element(p.progress.begin(), p.progress.end()),
                       100 * p.used[0], 100 * p.used[1]);
  }
  return out + "\n";
}

std::string report(results const& r) {
  std::string out =
      "**Shortfall**, % of the ideal, every algorithm with sluice's split by demand:\n\n";
  out += shortfall_table(r.algorithms, r.by_demand);
  out += "\n**Its causes**, %; served is of the capacity:\n\n" + causes_table(r);
  out += "\n**From idle to 95 % of the ideal**, median / worst:\n\n" + rise_table(r);
  out +=
      "\n**Shortfall with equal parts for all nodes of a job**, as PADLL, Cheferd and SHIO "
      "split, %:\n\n";
  out += shortfall_table(r.algorithms, r.equal);
  out += "\n**Four jobs that need two resources** as 1:0.1, 0.1:1, 1:1, 0.5:0.2, %:\n\n";
  out += pairs_table(r);
  out += "\nRecorded demand (FNV-1a of the text):";
  for (char const* s : scenarios) out += fmt::format(" {} `{:016x}`", s, r.digest.at(s));
  return out + "\n";
}

std::string drawing(results const& r) {
  std::vector<plot_panel> panels;
  for (char const* s : {"mix", "light", "many"}) {
    plot_panel panel{s, {}};
    for (std::string const& name : r.algorithms) {
      outcome const& o = r.by_demand.at(name).at(s);
      panel.bars.push_back({name, o.wasted, o.unfair, o.shortfall});
    }
    panels.push_back(panel);
  }
  std::vector<plot_line> lines;
  for (char const* name : {"maxmin", "psfa-2023", "psfa-2026", "static"})
    lines.push_back({name, r.by_demand.at(name).at("ramplong").first_rise});
  return draw(panels, lines);
}

void replace_between_marks(std::string const& path, std::string const& text) {
  std::string whole = read_whole(path);
  auto const begin = whole.find(begin_mark), end = whole.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error(path + " has no place for the comparison");
  whole.replace(begin + begin_mark.size(), end - begin - begin_mark.size(), text);
  write_file(path, whole);
}

}  // namespace

int compare_main(int argc, char** argv) {
  options const o = parse(argc, argv);
  results const r = run_all(o.record);
  std::string const text = report(r);
  if (o.readme.empty())
    std::fputs(text.c_str(), stdout);
  else
    replace_between_marks(o.readme, text);
  if (!o.svg.empty()) write_file(o.svg, drawing(r));
  return 0;
}

}  // namespace sluice::sim
