// SPDX-License-Identifier: Apache-2.0
// Runs worlds of all shapes, each from a seed of its own, until the cycles asked for are done. A
// broken rule must be seen: --break turns one off and expects a violation.
#include "lease.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "lease_world.h"

namespace sluice::sim {
namespace {

struct breakable {
  char const* name;
  bool lease::rules::*rule;
};

constexpr breakable table[] = {
#define ROW(name) \
  { #name, &lease::rules::name }
    ROW(acknowledged_first), ROW(counts_lends),      ROW(lend_from_echo),    ROW(waits_quiet),
    ROW(believes_own_echo),  ROW(drift_margin),      ROW(judged_by_current), ROW(needs_majority),
    ROW(lease_from_report),  ROW(keeps_order),       ROW(lends_to_one),      ROW(waits_after_boot),
    ROW(remembers),          ROW(escrow_stays_lent), ROW(leases_nest),       ROW(acknowledges_late),
    ROW(quiet_holds_back),   ROW(lends_nest),        ROW(lends_unused),
#undef ROW
};
static_assert(sizeof(lease::rules) == sizeof table / sizeof *table, "each rule has a row");

constexpr char const* shapes[] = {"flat", "relay", "deep", "mixed"};

struct options {
  std::uint64_t cycles = 1'000'000;
  double hours = 0;
  std::uint64_t seed = 1;
  char const* broken = nullptr;
  char const* shape = nullptr;
  std::uint64_t world_cycles = 2500;
  bool is_verbose = false;
};

struct outcome {
  std::uint64_t cycles = 0, worlds = 0, seed = 0;
  std::string shape;
  world::counters counts;
  std::optional<violation> broken;
  std::vector<std::string> events;
};

double elapsed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool goes_on(options const& o, outcome const& all, time_t begin) {
  if (o.hours > 0) return std::difftime(std::time(nullptr), begin) < o.hours * 3600;
  return all.cycles < o.cycles;
}

outcome run(options const& o, lease::rules const& obeys) {
  outcome all;
  time_t const begin = std::time(nullptr);
  for (std::uint64_t i = 0; goes_on(o, all, begin); ++i) {
    all.seed = o.seed + i;
    random dice(all.seed);
    all.shape = o.shape ? o.shape : shapes[all.seed % 4];
    world w(draw_config(dice, all.shape, obeys), all.seed);
    w.run(o.world_cycles);
    ++all.worlds;
    all.cycles += w.cycles_run();
    all.counts.events += w.counts().events;
    all.counts.faults += w.counts().faults;
    all.counts.calms += w.counts().calms;
    all.counts.usable += w.counts().usable;
    all.counts.capacity += w.counts().capacity;
    if (!w.broken()) continue;
    all.broken = w.broken();
    all.events = w.last_events();
    break;
  }
  return all;
}

void tell(outcome const& r, bool with_events) {
  std::printf("seed %llu, %s, %.3f s: %s\n", static_cast<unsigned long long>(r.seed),
              r.shape.c_str(), static_cast<double>(r.broken->at) / 1e9, r.broken->what.c_str());
  for (std::string const& line : r.events) {
    if (with_events) std::printf("  %s\n", line.c_str());
  }
}

// Every rule named must be missed.
int run_broken(options o) {
  int status = 0;
  bool found = false;
  for (breakable const& b : table) {
    if (std::strcmp(o.broken, "all") != 0 && std::strcmp(o.broken, b.name) != 0) continue;
    found = true;
    lease::rules obeys;
    obeys.*b.rule = false;
    outcome const r = run(o, obeys);
    std::printf("%-20s %s after %llu cycles", b.name, r.broken ? "caught" : "NOT CAUGHT",
                static_cast<unsigned long long>(r.cycles));
    if (r.broken) {
      std::printf(": ");
      tell(r, o.is_verbose);
    } else {
      std::printf("\n");
      status = 1;
    }
  }
  if (!found) std::fprintf(stderr, "simulate lease: no rule is called %s\n", o.broken);
  return found ? status : 2;
}

bool parse(int argc, char** argv, options& o) {
  for (int i = 1; i < argc; ++i) {
    std::string const a = argv[i];
    if (a == "--verbose") {
      o.is_verbose = true;
      continue;
    }
    if (i + 1 == argc) return false;
    char const* const v = argv[++i];
    if (a == "--cycles") {
      o.cycles = std::strtoull(v, nullptr, 10);
    } else if (a == "--hours") {
      o.hours = std::strtod(v, nullptr);
    } else if (a == "--seed") {
      o.seed = std::strtoull(v, nullptr, 10);
    } else if (a == "--break") {
      o.broken = v;
    } else if (a == "--shape") {
      o.shape = v;
    } else if (a == "--world") {
      o.world_cycles = std::strtoull(v, nullptr, 10);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int lease_main(int argc, char** argv) {
  options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr,
                 "usage: simulate lease [--cycles N] [--hours H] [--seed S] [--break RULE|all]\n"
                 "                      [--shape flat|relay|deep|mixed] [--world CYCLES]\n"
                 "                      [--verbose]\n");
    return 2;
  }
  if (o.broken) return run_broken(o);
  outcome const r = run(o, {});
  double const mean = r.counts.capacity == 0 ? 0
                                             : static_cast<double>(r.counts.usable) /
                                                   static_cast<double>(r.counts.capacity);
  std::printf(
      "%llu cycles in %llu worlds from seed %llu: %llu events, %llu faults, %llu calms, "
      "%.1f %% of the capacity usable, %.1f s of CPU\n",
      static_cast<unsigned long long>(r.cycles), static_cast<unsigned long long>(r.worlds),
      static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(r.counts.events),
      static_cast<unsigned long long>(r.counts.faults),
      static_cast<unsigned long long>(r.counts.calms), 100 * mean, elapsed());
  if (!r.broken) return 0;
  tell(r, true);
  return 1;
}

}  // namespace sluice::sim
