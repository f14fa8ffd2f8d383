// SPDX-License-Identifier: Apache-2.0
#include "gone.h"

#include "join.h"
#include "state.h"
#include "waiters.h"

namespace sluice {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

constexpr unsigned all_shards = abi::owned_shards + abi::common_shards;

/// Numbers of shards; the common ones come last.
class shard_set {
 public:
  void add(unsigned number) { word_[number / 64] |= std::uint64_t{1} << number % 64; }
  template <class Do>
  void each(Do&& act) const {
    for (unsigned word = 0; word < words; ++word)
      for (std::uint64_t rest = word_[word]; rest != 0; rest &= rest - 1)
        act(word * 64 + static_cast<unsigned>(__builtin_ctzll(rest)));
  }

 private:
  static constexpr unsigned words = (all_shards + 63) / 64;
  std::uint64_t word_[words] = {};
};

/// The records of one bucket.
struct records {
  abi::segment& s;
  core::bucket& b;
  std::uint32_t channel;  // + 1
  core::ticket const& mine;
  std::int64_t at_ns;
  std::uint64_t mark;                // for shards that the looker takes
  shard_set living = {}, left = {};  // shards whose waiter is there, or gone
  bool keeps = false;                // one is before `mine`, and not to be given back yet

  abi::waiter& of(unsigned number) const {
    return (number < abi::owned_shards ? s.owned[number] : s.common[number - abi::owned_shards])
        .waiting;
  }
  bool has(unsigned number) const {
    std::uint32_t const seen = of(number).channel.load(std::memory_order_acquire);
    return (seen & ~abi::waiter::may_have_left) == channel;
  }
};

void look_at_all(records& r) {
  unsigned const used = r.s.head.shards_used.load(relaxed);
  for (unsigned i = 0; i < used && i < abi::owned_shards; ++i)
    if (r.has(i))
      (is_free_or_left(r.s, r.s.shard_owner[i].load(relaxed)) ? r.left : r.living).add(i);
  if (r.s.head.commons_used.load(relaxed) == 0) return;
  for (unsigned i = abi::owned_shards; i < all_shards; ++i)
    if (r.has(i)) r.living.add(i);
}

// The first of the living, by their tickets, that is due later.
core::ticket first_living(records const& r, std::uint64_t than) {
  core::ticket first = r.mine;
  bool is_any = core::distance(first.start, than) > 0;
  r.living.each([&](unsigned number) {
    std::uint64_t const start = r.of(number).ticket.load(relaxed);
    if (core::distance(start, than) <= 0) return;
    if (is_any && core::distance(start, first.start) >= 0) return;
    first = {start, r.of(number).amount.load(relaxed), false};
    is_any = true;
  });
  return first;
}

// What was booked before this ticket is given back. The living may come sooner by what is paid
// until somebody looks again: if they did not, what lies between them would cost its time.
std::uint64_t end_of_look(records const& r) {
  std::uint64_t const paid = core::paid_units(r.b, r.at_ns);
  std::uint64_t sooner = core::paid_units(r.b, r.at_ns + core::looks_apart_ns) - paid;
  core::ticket first = first_living(r, paid);
  for (unsigned i = 0; i < all_shards && first.start != r.mine.start; ++i) {
    if (first.cost > sooner) break;
    sooner -= first.cost;
    first = first_living(r, first.start);
  }
  return first.start;
}

// Nobody else touches the record of a shard that the caller has taken. Who is ended meanwhile
// leaves it behind like any other.
std::uint64_t take_left(records& r, unsigned index, std::uint64_t end) {
  std::atomic<std::uint64_t>& owner = r.s.shard_owner[index];
  std::uint64_t seen = owner.load(relaxed);
  if (!is_free_or_left(r.s, seen) || !owner.compare_exchange_strong(seen, r.mark)) return 0;
  if (seen == 0) r.s.head.threads.fetch_add(1);
  abi::waiter& record = r.of(index);
  std::uint64_t units = 0;
  std::uint64_t const ticket = record.ticket.load(relaxed);
  std::uint32_t shown = record.channel.load(relaxed);
  if (r.has(index) && core::distance(ticket, end) < 0) {
    if (owner.load() == r.mark && record.channel.compare_exchange_strong(shown, 0))
      units = waiters::write_off(r.b, record, r.at_ns);
  } else if (r.has(index) && core::distance(ticket, r.mine.start) < 0) {
    r.keeps = true;
  }
  // Our process may have ended meanwhile, by another thread, and given the shard away.
  std::uint64_t ours = r.mark;
  if (owner.compare_exchange_strong(ours, 0)) r.s.head.threads.fetch_sub(1);
  return units;
}

}  // namespace

gone_look look_for_the_gone(abi::segment& s, unsigned channel, core::ticket const& mine,
                            std::int64_t at_ns) {
  core::bucket& b = s.bucket[channel];
  std::uint64_t const mark = shard_mark();
  bool const can_tell = joined() && mark >> 32 != 0;
  if (!can_tell || !core::may_look(b, at_ns)) return {};
  records r{s, b, channel + 1, mine, at_ns, mark};
  look_at_all(r);
  std::uint64_t const end = end_of_look(r);
  std::uint64_t units = 0;
  r.left.each([&](unsigned number) { units += take_left(r, number, end); });
  waiters::give_back(b, units);
  return {units != 0, r.keeps};
}

}  // namespace sluice
