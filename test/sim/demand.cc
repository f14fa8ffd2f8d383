// SPDX-License-Identifier: Apache-2.0
// The scenarios: saturated, on and off, bursty, constant, ramping, all on one rank, phases that end
// at a barrier. Random numbers are made here and not by the library's distributions, which differ
// between implementations.
#include "demand.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <ostream>
#include <stdexcept>

namespace sluice::sim {
namespace {

constexpr std::uint64_t more_than_any = 300'000;  // tokens/s of one node: more than the capacity

class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(next() % (most - least + 1));
  }

 private:
  std::uint64_t state_;
};

std::uint32_t ms(std::uint32_t milliseconds) { return milliseconds / 5; }

class writer {
 public:
  writer(std::string_view name, std::uint32_t seconds, std::uint64_t seed) : dice_(seed) {
    series_.name = name;
    series_.steps = seconds * steps_per_s;
  }

  /// A job on `nodes` nodes; its first stream.
  std::uint32_t job(std::uint32_t nodes, bool piles_up = false) {
    auto const first = static_cast<std::uint32_t>(series_.streams.size());
    for (std::uint32_t n = 0; n < nodes; ++n)
      series_.streams.push_back({series_.jobs, 16, piles_up});
    series_.jobs += 1;
    return first;
  }

  void want(std::uint32_t step, std::uint32_t stream, std::uint64_t rate) {
    if (step < series_.steps) series_.changes.push_back({step, stream, rate});
  }

  void constant(std::uint32_t nodes, std::uint64_t rate) {
    std::uint32_t const first = job(nodes);
    for (std::uint32_t n = 0; n < nodes; ++n) want(0, first + n, rate);
  }

  /// All nodes together, each phase up to a fifth longer or shorter.
  void on_off(std::uint32_t nodes, std::uint64_t rate, std::uint32_t on, std::uint32_t off) {
    std::uint32_t const first = job(nodes);
    bool is_on = false;
    for (std::uint32_t step = off; step < series_.steps;) {
      is_on = !is_on;
      for (std::uint32_t n = 0; n < nodes; ++n) want(step, first + n, is_on ? rate : 0);
      std::uint32_t const phase = is_on ? on : off;
      step += dice_.between(phase - phase / 5, phase + phase / 5);
    }
  }

  /// Each node by itself: bursts of a fifth of `longest` to all of it, gaps of up to three times
  /// that.
  void bursty(std::uint32_t nodes, std::uint64_t rate, std::uint32_t longest, bool piles_up) {
    std::uint32_t const first = job(nodes, piles_up);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      for (std::uint32_t step = dice_.between(0, longest * 3); step < series_.steps;) {
        want(step, first + n, rate);
        step += dice_.between(longest / 5, longest);
        want(step, first + n, 0);
        step += dice_.between(longest, longest * 3);
      }
    }
  }

  void triangle(std::uint32_t nodes, std::uint64_t peak, std::uint32_t period) {
    std::uint32_t const first = job(nodes);
    for (std::uint32_t step = 0; step < series_.steps; step += ms(100)) {
      std::uint32_t const at = step % period;
      std::uint64_t const height = std::min(at, period - at);
      for (std::uint32_t n = 0; n < nodes; ++n) want(step, first + n, peak * height * 2 / period);
    }
  }

  /// Phases of work that is there at once; the last node has three times the work of the others.
  void barrier(std::uint32_t nodes, std::uint64_t tokens, std::uint32_t period) {
    std::uint32_t const first = job(nodes, true);
    for (std::uint32_t step = ms(700); step < series_.steps; step += period) {
      for (std::uint32_t n = 0; n < nodes; ++n) {
        want(step, first + n, tokens * steps_per_s * (n + 1 == nodes ? 3 : 1));
        want(step + 1, first + n, 0);
      }
    }
  }

  void rank_zero(std::uint32_t nodes, std::uint64_t rate, std::uint32_t on, std::uint32_t off) {
    on_off(1, rate, on, off);
    for (std::uint32_t n = 1; n < nodes; ++n)
      series_.streams.push_back({series_.jobs - 1, 16, false});
  }

  demand_series finish() {
    std::stable_sort(
        series_.changes.begin(), series_.changes.end(),
        [](demand_change const& a, demand_change const& b) { return a.step < b.step; });
    return std::move(series_);
  }

 private:
  dice dice_;
  demand_series series_;
};

void add_mix(writer& w) {
  w.on_off(4, more_than_any / 3, ms(1000), ms(1000));
  w.on_off(4, more_than_any / 3, ms(5000), ms(5000));
  w.bursty(4, 60'000, ms(500), false);
  w.bursty(4, 40'000, ms(1000), true);
  w.constant(4, 5'000);
  w.triangle(4, 20'000, ms(20'000));
  w.rank_zero(4, 60'000, ms(3000), ms(1500));
  w.barrier(4, 8'000, ms(2000));
}

void add_many(writer& w) {
  for (std::uint32_t job = 0; job < 64; ++job) {
    std::uint32_t const nodes = 1 + job % 4;
    switch (job / 4 % 4) {
      case 0:
        w.on_off(nodes, 12'000, ms(1500 + 50 * job), ms(2000));
        break;
      case 1:
        w.bursty(nodes, 16'000, ms(1000), job % 8 < 4);
        break;
      case 2:
        w.constant(nodes, 800);
        break;
      default:
        w.rank_zero(nodes, 15'000, ms(2000), ms(1000 + 30 * job));
    }
  }
}

}  // namespace

demand_series make_demand(std::string_view scenario, std::uint64_t seed) {
  bool const is_ramp = scenario.substr(0, 4) == "ramp";
  writer w(scenario, is_ramp ? 600 : 60, seed);
  if (scenario == "ramp" || scenario == "ramplong") {
    std::uint32_t const phase = scenario == "ramp" ? ms(4000) : ms(120'000);
    for (int job = 0; job < 3; ++job) w.constant(4, more_than_any);
    w.on_off(4, more_than_any, phase, phase);
  } else if (scenario == "rampslack") {
    for (int job = 0; job < 3; ++job) w.constant(4, 8'250);  // 15 % of the capacity each
    w.on_off(4, more_than_any, ms(4000), ms(4000));
  } else if (scenario == "mix") {
    w.constant(4, more_than_any);
    add_mix(w);
  } else if (scenario == "light") {
    add_mix(w);
  } else if (scenario == "many") {
    add_many(w);
  } else {
    throw std::runtime_error("no scenario " + std::string(scenario));
  }
  return w.finish();
}

void write_demand(std::ostream& out, demand_series const& series) {
  out << "sluice-demand 1 " << series.name << ' ' << series.capacity << ' ' << series.steps << ' '
      << series.jobs << ' ' << series.streams.size() << ' ' << series.changes.size() << '\n';
  for (demand_stream const& s : series.streams)
    out << s.job << ' ' << s.threads << ' ' << s.piles_up << '\n';
  for (demand_change const& c : series.changes)
    out << c.step << ' ' << c.stream << ' ' << c.wanted << '\n';
}

demand_series read_demand(std::istream& in) {
  demand_series series;
  std::string word, version;
  std::size_t streams = 0, changes = 0;
  in >> word >> version >> series.name >> series.capacity >> series.steps >> series.jobs >>
      streams >> changes;
  if (!in || word != "sluice-demand" || version != "1")
    throw std::runtime_error("not a recorded demand");
  for (std::size_t i = 0; i < streams && in; ++i) {
    demand_stream s;
    in >> s.job >> s.threads >> s.piles_up;
    if (s.job >= series.jobs) in.setstate(std::ios::failbit);
    series.streams.push_back(s);
  }
  for (std::size_t i = 0; i < changes && in; ++i) {
    demand_change c;
    in >> c.step >> c.stream >> c.wanted;
    if (c.stream >= streams) in.setstate(std::ios::failbit);
    series.changes.push_back(c);
  }
  if (!in) throw std::runtime_error("the recorded demand ends early or contradicts itself");
  return series;
}

}  // namespace sluice::sim
