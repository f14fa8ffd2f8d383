// SPDX-License-Identifier: Apache-2.0
#include "node/accounts.h"

#include "segment/sums.h"
#include "verbs/steered_metrics.h"

namespace sluice::node {

std::string const& accounts::class_of(job const& j) const {
  return class_in_force(j, overrides_.find(j.key));
}

accounts::signs accounts::measure(job& j, look_depth depth, std::int64_t now_ns) {
  signs out;
  if (j.is_broken()) return out;
  for (auto& s : j.streams) {
    sample const seen = j.look_at(s.channel, depth, now_ns);
    bool const has_begun = s.measured.tick(seen, j.paid_to(s), now_ns);
    out.has_begun_to_wait = out.has_begun_to_wait || has_begun;
    out.is_waiting = out.is_waiting || seen.blocked || s.last.blocked_ppm != 0;
  }
  return out;
}

/// Jobs of an owner without time left are estimated from their curves. His watched jobs have none:
/// they are looked at later.
accounts::signs accounts::measure(std::int64_t now_ns) {
  signs out;
  auto const look = [&](job& j, look_depth depth) {
    signs const of_job = measure(j, depth, now_ns);
    out.has_begun_to_wait = out.has_begun_to_wait || of_job.has_begun_to_wait;
    out.is_waiting = out.is_waiting || of_job.is_waiting;
  };
  loop_.steps.each(
      jobs_.all(), [&](job& j) { look(j, look_depth::threads); },
      [&](job& j) {
        if (!j.record.monitor) look(j, look_depth::curve);
      });
  return out;
}

void accounts::end_cycle(job& j, std::int64_t now_ns) {
  if (j.is_broken()) return;
  for (auto& s : j.streams) {
    std::int64_t const span_ns = now_ns - s.measured.since_ns();
    s.last = s.measured.take(s.unit, s.waits, now_ns);
    s.counted.add(j.told_of(s), span_ns, s.beyond());
  }
}

/// Short waits show in the histograms only. Without time left they show later.
void accounts::end_cycle(std::int64_t now_ns) {
  ++cycles_;
  loop_.steps.each(jobs_.all(), look_at_waits);
  for (auto const& j : jobs_.all()) end_cycle(*j, now_ns);
}

void accounts::look_at_waits(job& j) {
  if (j.is_broken()) return;
  for (auto& s : j.streams) s.waits = waits_so_far(j.memory(), s.channel);
}

void accounts::count(job& j) {
  if (j.is_broken()) return;
  count_hints(j);
  amounts& sum = by_class_[class_of(j)];
  for (auto& s : j.streams) {
    amounts const before = s.counted.done();
    figures const now = j.told_of(s);
    s.counted.look(s.unit, segment::sum_channel(j.memory(), s.channel),
                   now.waiters != 0 || now.waiting != 0, j.processes);
    sum.delayed += s.counted.done().delayed - before.delayed;
    sum.waited_ns += s.counted.done().waited_ns - before.waited_ns;
  }
}

void accounts::count() {
  loop_.figures.each(jobs_.all(), [&](job& j) { count(j); });
}

void accounts::count_last(std::span<job* const> gone, runtime::dashboard* board,
                          steering const& steered, moment at) {
  for (job* j : gone)
    loop_.figures.spend_anyhow(j->owner, [&] {
      measure(*j, look_depth::threads, at.mono_ns);
      look_at_waits(*j);
      end_cycle(*j, at.mono_ns);
      count(*j);
      look_at_times(*j);
    });
  tell(board, steered, at, gone);
}

void accounts::use(runtime::metric_table& m) {
  for (auto const& [supply, was] : site_.renewed()) {
    if (supply < before_.size()) before_[supply] = {};
    verbs::remove_supply(m, was.resource, was.target, was.unit);
  }
}

void accounts::keep_sums(job const& gone) {
  before_.resize(site_.supplies().size());
  for (auto const& of : gone.streams) {
    before_[of.supply].served += static_cast<double>(of.counted.done().served);
    before_[of.supply].delayed += static_cast<double>(of.counted.done().delayed);
    before_[of.supply].beyond += of.counted.done().beyond;
  }
}

/// What its programs count they may set back as well: a sum only grows.
void accounts::count_hints(job& j) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;  // between two looks: else it lies
  auto const add = [](auto const& shared, auto& last, auto& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint64_t const now = shared[i].load(std::memory_order_relaxed);
      if (now > last[i] && now - last[i] < most) sums[i] += now - last[i];
      last[i] = now;
    }
  };
  if (j.memory().head.hinted_targets != 0) add(j.memory().hint, j.hints, hints_);
  if (abi::may_gather(j.memory())) add(j.memory().gather, j.gathered, gathered_);
  if (j.memory().reads.head.targets != 0) add(j.memory().buffer, j.buffered, buffered_);
}

void accounts::look_at_times(job& j) {
  if (j.is_broken()) return;
  std::string const& qos_class = class_of(j);
  std::string_view const shown = qos_class.empty() ? "none" : std::string_view(qos_class);
  times_.look_at_calls(j.memory(), j.times, site_.site(), shown);
  for (auto const& s : j.streams) times_.look_at_waits(j.memory(), s.channel, j.times, shown);
}

}  // namespace sluice::node
