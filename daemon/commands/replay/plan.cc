// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sluice::replay {

namespace {

constexpr std::size_t most_workers = 8192;

double unit_of(unsigned op, plan_settings const& s) {
  if (!trace::op_table[op].counts_bytes()) return 1;
  bool const reads = trace::op_table[op].as == core::op::read;
  return static_cast<double>(reads ? s.read_bytes : s.write_bytes);
}

std::vector<double> column_of(trace::trace const& load, std::size_t c) {
  std::vector<double> amounts;
  amounts.reserve(load.counts.size());
  for (auto const& row : load.counts) amounts.push_back(row[c]);
  return amounts;
}

/// The threads of one process of a job, before they know their parts.
std::vector<worker> threads_of(plan const& p, unsigned job, plan_settings const& s) {
  std::vector<worker> out;
  worker all{job, 0, {}};
  for (unsigned i = 0; i < p.streams.size(); ++i)
    if (p.streams[i].job == job) all.shares.push_back({i, {}});
  for (unsigned t = 0; t < s.threads; ++t) out.push_back(all);
  if (s.threads == 0)
    for (share const& one : all.shares)
      for (unsigned t = 0; t < s.threads_per_op; ++t) out.push_back({job, 0, {one}});
  return out;
}

}  // namespace

plan make_plan(trace::trace const& load, plan_settings const& s) {
  plan p;
  p.jobs = load.jobs();
  p.processes = s.processes;
  p.warm_up_s = s.warm_up_s;
  p.length_s = s.duration_s > 0 ? std::min(s.duration_s, load.duration_s()) : load.duration_s();
  for (std::size_t c = 0; c < load.columns.size(); ++c) {
    auto const& column = load.columns[c];
    auto const job =
        static_cast<unsigned>(std::find(p.jobs.begin(), p.jobs.end(), column.job) - p.jobs.begin());
    double const unit = unit_of(column.op, s);
    p.streams.push_back(
        {job, column.op, unit, phase_of(static_cast<unsigned>(c)),
         curve(column_of(load, c), load.interval_s, unit, {s.warm_up_s, p.length_s}), 0});
  }
  for (unsigned job = 0; job < p.jobs.size(); ++job) {
    std::vector<worker> const threads = threads_of(p, job, s);
    if (p.workers.size() + threads.size() * s.processes > most_workers)
      throw usage_error(fmt::format(
          "more than {} threads; take fewer --jobs, --processes or --threads", most_workers));
    for (unsigned process = 0; process < s.processes; ++process)
      for (worker w : threads) {
        w.process = process;
        for (share& one : w.shares) one.of_it.index = p.streams[one.stream].threads++;
        p.workers.push_back(std::move(w));
      }
  }
  for (worker& w : p.workers)
    for (share& one : w.shares) one.of_it.of = p.streams[one.stream].threads;
  return p;
}

counters_shape plan::shape() const {
  counters_shape s;
  s.jobs = static_cast<unsigned>(jobs.size());
  s.processes = s.jobs * processes;
  s.workers = static_cast<unsigned>(workers.size());
  for (worker const& w : workers)
    s.ops_most = std::max(s.ops_most, static_cast<unsigned>(w.shares.size()));
  return s;
}

std::uint64_t plan::fingerprint() const {
  std::uint64_t hash = mix_seed(workers.size(), streams.size());
  for (stream const& s : streams) {
    double const last = s.wanted.last();
    std::uint64_t bits = 0;
    std::memcpy(&bits, &last, sizeof bits);
    hash = mix_seed(hash ^ bits, s.op + 64 * s.job);
  }
  return hash;
}

bool plan::has(unsigned job, core::op as) const {
  return std::any_of(streams.begin(), streams.end(), [&](stream const& s) {
    return s.job == job && trace::op_table[s.op].as == as;
  });
}

}  // namespace sluice::replay
