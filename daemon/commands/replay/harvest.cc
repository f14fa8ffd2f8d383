// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/harvest.h"

#include <algorithm>

#include "core/durations.h"

namespace sluice::replay {

namespace {}  // namespace

void harvest::take(unsigned worker, std::uint64_t number) {
  std::int64_t const second = book_.worker(worker).second[number % ring_records];
  tally const* const record = book_.record(worker, number);
  auto const& shares = plan_.workers[worker].shares;
  for (std::size_t i = 0; i < shares.size(); ++i) times_.add(shares[i].stream, second, record[i]);
}

glance harvest::look(std::int64_t now_ns) {
  glance seen;
  for (unsigned w = 0; w < plan_.workers.size(); ++w) {
    worker_page& page = book_.worker(w);
    std::uint64_t const head = page.head.load(std::memory_order_acquire);  // pairs with turn_to()
    std::uint64_t tail = page.tail.load(std::memory_order_relaxed);
    for (; tail < head; ++tail) take(w, tail);
    page.tail.store(tail, std::memory_order_release);  // pairs with turn_to()
    seen.sent += page.sent.load(std::memory_order_relaxed);
    if (page.ended.load(std::memory_order_acquire)) continue;
    seen.all_ended = false;
    std::int64_t const next_ns = page.next_ns.load(std::memory_order_relaxed);
    if (now_ns <= 0 || next_ns >= now_ns) continue;
    auto const& shares = plan_.workers[w].shares;
    auto const next = page.next_op.load(std::memory_order_relaxed);
    std::int64_t const lag_ns = now_ns - next_ns;
    seen.lag_s = std::max(seen.lag_s, static_cast<double>(lag_ns) / 1e9);
    if (next < shares.size()) times_.seen_late(shares[next].stream, now_ns / second_ns, lag_ns);
  }
  return seen;
}

void harvest::finish() {
  look(0);
  for (unsigned w = 0; w < plan_.workers.size(); ++w)
    take(w, book_.worker(w).head.load(std::memory_order_acquire));
}

}  // namespace sluice::replay
