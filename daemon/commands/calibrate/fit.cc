// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/fit.h"

#include <algorithm>
#include <cmath>

namespace sluice::calibrate {

namespace {

/// So many in a hundred of the loads that met got no more than the floor. The least of all would be
/// at the mercy of one bad moment.
constexpr double floor_share = 0.05;
constexpr double nearly = 0.9, much_slower = 0.7;

/// Interpolated; `values` is not empty.
double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  double const rank = share * static_cast<double>(values.size() - 1);
  auto const low = static_cast<std::size_t>(rank);
  double const next = values[std::min(low + 1, values.size() - 1)];
  return values[low] + (next - values[low]) * (rank - static_cast<double>(low));
}

double median(std::vector<double> const& values) { return at_share(values, 0.5); }

/// The rate that is one VOP, and how sure it is.
struct measure {
  double max_vops = 0;
  double spread = 0;
};

bool is_aligned_point(step const& s) { return s.kind == step_kind::point && s.works[0].is_aligned; }

using points = std::vector<policy::measured>;

/// The n-th fastest, from 0; the slowest when there are fewer.
double fast(points const& from, std::size_t n) {
  std::vector<double> rates;
  for (auto const& how : from) rates.push_back(how.per_s);
  std::sort(rates.rbegin(), rates.rend());
  return rates.empty() ? 0 : rates[std::min(n, rates.size() - 1)];
}

/// The median of those that are nearly as fast as `fastest`: the fastest alone was lucky.
measure plateau(points const& from, double fastest) {
  std::vector<double> rates, spreads;
  for (auto const& how : from) {
    if (how.per_s < nearly * fastest) continue;
    rates.push_back(how.per_s);
    spreads.push_back(how.spread);
  }
  return rates.empty() ? measure() : measure{median(rates), median(spreads)};
}

/// Small requests are all about as fast, and a plateau is the measure: that of the points that can
/// be trusted. Where two others are much faster than all of these, no slow one may be the measure.
measure measure_of(std::vector<step> const& plan, std::vector<sample> const& samples) {
  points trusted, all;
  for (step const& s : plan) {
    if (!is_aligned_point(s)) continue;
    seen const what = seen_of(s, samples);
    if (what.rounds == 0) continue;
    all.push_back(what.how);
    if (is_stable(what)) trusted.push_back(what.how);
  }
  double const second = fast(all, 1);
  return fast(trusted, 0) >= much_slower * second ? plateau(trusted, fast(trusted, 0))
                                                  : plateau(all, second);
}

class fitting {
 public:
  fitting(measure const& m) : measure_(m) { out_.max_vops = m.max_vops; }

  void add(step const& s, seen what) {
    what.how.is_unstable = !is_stable(what) || measure_.spread > most_spread;
    double const cost = cost_at(what.how.per_s);
    work const& w = s.works[0];
    if (s.kind == step_kind::point) {
      auto& curves = w.op == "read" ? out_.read : out_.write;
      curves[w.is_aligned ? 1 : 0].push_back({w.bytes, cost, what.how});
    } else if (s.kind == step_kind::side) {
      out_.beside.push_back({s.side_kind, w.bytes, cost, what.how});
    } else if (s.kind == step_kind::op) {
      out_.ops.push_back({w.op, cost, what.how});
    } else if (s.kind == step_kind::grid) {
      add_cell(s, what);
    } else {
      add_pair(s, what);
    }
  }

  policy::cost_file done() {
    set_floor();
    // A curve of one point is none.
    for (auto* curves : {&out_.read, &out_.write})
      for (auto& curve : *curves)
        if (curve.size() < 2) curve.clear();
    return std::move(out_);
  }

 private:
  double cost_at(double per_s) const {
    return std::clamp(measure_.max_vops / per_s, policy::least_cost, policy::most_cost);
  }

  void add_cell(step const& s, seen const& what) {
    policy::interference cell;
    cell.readers = s.readers;
    cell.read_bytes = s.works[0].bytes;
    cell.write_bytes = s.works[1].bytes;
    for (std::size_t i = 0; i < s.works.size(); ++i) {
      double const cost = cost_of(out_, s.works[i]);
      if (cost == 0) return;
      cell.vops += what.per_s[i] * cost;
    }
    out_.grid.push_back(cell);
  }

  void add_pair(step const& s, seen const& what) {
    set_floor();
    policy::verified_pair pair;
    pair.kind = s.side_kind;
    for (unsigned i = 0; i < 2; ++i) {
      double const cost = cost_of(out_, s.works[i]);
      if (cost == 0) return;
      pair.bytes[i] = s.works[i].bytes;
      pair.ratio[i] = what.per_s[i] * cost / (out_.provisionable_vops / 2);
    }
    auto const [least, most] = std::minmax(pair.ratio[0], pair.ratio[1]);
    pair.mmr = most > 0 ? least / most : 0;
    out_.pairs.push_back(pair);
  }

  /// Reads and writes that do not meet anywhere add up to more than one VOP at a time; that is not
  /// promised.
  void set_floor() {
    std::vector<double> all;
    for (auto const& cell : out_.grid) all.push_back(cell.vops);
    double const floor = all.empty() ? out_.max_vops / 2 : at_share(all, floor_share);
    out_.provisionable_vops = std::min(floor, out_.max_vops);
  }

  measure measure_;
  policy::cost_file out_;
};

}  // namespace

bool is_stable(seen const& s) { return !s.is_thin && s.how.spread <= most_spread; }

seen seen_of(step const& s, std::vector<sample> const& samples) {
  seen out;
  std::vector<double> p50, p99;
  std::vector<std::vector<double>> rates(s.works.size());
  for (sample const& one : samples) {
    if (one.step != s.id || !one.missing.empty() || one.groups.size() != s.works.size()) continue;
    if (s.works.size() == 1 && !(one.groups[0].per_s > 0)) continue;
    for (std::size_t i = 0; i < one.groups.size(); ++i) rates[i].push_back(one.groups[i].per_s);
    p50.push_back(one.groups[0].p50_us);
    p99.push_back(one.groups[0].p99_us);
    out.how.threads = one.threads;
    out.is_thin = out.is_thin || one.is_thin;
    ++out.rounds;
  }
  if (out.rounds == 0) return out;
  for (auto const& of_group : rates) out.per_s.push_back(median(of_group));
  auto const [least, most] = std::minmax_element(rates[0].begin(), rates[0].end());
  out.how.per_s = out.per_s[0];
  out.how.spread = out.per_s[0] > 0 ? (*most - *least) / out.per_s[0] : 0;
  out.how.p50_us = median(p50);
  out.how.p99_us = median(p99);
  return out;
}

policy::cost_file fit(std::vector<step> const& plan, std::vector<sample> const& samples) {
  measure const m = measure_of(plan, samples);
  if (m.max_vops == 0) return {};
  fitting to(m);
  for (step const& s : plan)
    if (seen const what = seen_of(s, samples); what.rounds > 0) to.add(s, what);
  return to.done();
}

double cost_of(policy::cost_file const& c, work const& w) {
  for (auto const& p : (w.op == "read" ? c.read : c.write)[1])
    if (p.bytes == w.bytes) return p.cost;
  return 0;
}

}  // namespace sluice::calibrate
