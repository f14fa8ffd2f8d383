// SPDX-License-Identifier: Apache-2.0
// Proportional sharing without false allocation, as published: who uses less than it was promised
// keeps what it uses and a part of the gap, what remains goes out by usage. 2023: every 5 s, a
// quarter of the gap, jobs in the order of a hash table. 2026: every 1 s, a twentieth, smallest
// promise first. A job that was idle is the one helped least, and needs many rounds: that is the
// published behaviour, kept for comparison. Changed here: a job that comes or goes is seen at once,
// limits hold, and the sum never exceeds the capacity (published: by up to 0.6 %).
#include <algorithm>
#include <map>
#include <numeric>

#include "core/durations.h"
#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

constexpr rate one_token = 1000;

struct variant {
  std::int64_t period_ns;
  rate gap_part;  // 1 / headroom
  bool sorted;
};

struct memory {
  rate granted = 0;
  rate used_sum = 0;
  rate samples = 0;
};

/// One job while a decision is made.
struct candidate {
  std::size_t index;
  rate promised;
  rate used;
  rate amount;
};

/// Stands for the order of a hash table: arbitrary, the same in every run.
std::uint64_t scattered(core::job_id id) {
  std::uint64_t job = id.high ^ id.low;
  job = (job ^ (job >> 31)) * 0x9e3779b97f4a7c15u;
  return job ^ (job >> 29);
}

rate part_of(rate amount, rate numerator, rate denominator) {
  return static_cast<rate>(static_cast<unsigned __int128>(amount) * numerator /
                           std::max<rate>(denominator, 1));
}

class psfa final : public per_supply {
 public:
  explicit psfa(variant const& v) : variant_(v) {}

 private:
  struct history {
    std::map<core::job_id, memory> jobs;
    rate capacity = 0;
    std::int64_t next_ns = 0;
  };

  void divide(round const& r) override {
    if (histories_.size() <= r.supply) histories_.resize(r.supply + 1);
    history& h = histories_[r.supply];
    bool const changed = observe(h, r);
    if (changed || r.now_ns >= h.next_ns) {
      decide(h, r, changed);
      h.next_ns = r.now_ns + variant_.period_ns;
    }
    basins_.clear();
    for (claim const& c : r.claims) {
      rate const amount = std::min(h.jobs[c.job].granted, c.limit);
      basins_.push_back({amount, amount, 1000});
    }
    water_fill(basins_, r.capacity, r.out);
  }

  /// Takes the samples; true if jobs came or went, or the capacity is another.
  static bool observe(history& h, round const& r) {
    bool changed = h.capacity != r.capacity || h.jobs.size() != r.claims.size();
    for (claim const& c : r.claims) {
      auto const [row, is_new] = h.jobs.try_emplace(c.job);
      row->second.used_sum = saturating_add(row->second.used_sum, c.served);
      row->second.samples += 1;
      changed |= is_new;
    }
    if (h.jobs.size() != r.claims.size()) {
      auto const here = [&](core::job_id job) {
        auto const at = std::lower_bound(r.claims.begin(), r.claims.end(), job,
                                         [](claim const& c, auto key) { return c.job < key; });
        return at != r.claims.end() && at->job == job;
      };
      std::erase_if(h.jobs, [&](auto const& row) { return !here(row.first); });
    }
    h.capacity = r.capacity;
    return changed;
  }

  void decide(history& h, round const& r, bool changed) const {
    std::vector<candidate> jobs;
    rate used_sum = 0;
    for (std::size_t i = 0; i < r.claims.size(); ++i) {
      claim const& c = r.claims[i];
      memory& m = h.jobs[c.job];
      rate const used = std::max(m.used_sum / std::max<rate>(m.samples, 1), one_token);
      jobs.push_back({i, c.declared > 0 ? c.declared : r.capacity / r.claims.size(), used, 0});
      used_sum = saturating_add(used_sum, used);
      m.used_sum = m.samples = 0;
    }
    std::sort(jobs.begin(), jobs.end(), [&](candidate const& a, candidate const& b) {
      if (variant_.sorted && a.promised != b.promised) return a.promised < b.promised;
      if (variant_.sorted) return a.index < b.index;
      return scattered(r.claims[a.index].job) < scattered(r.claims[b.index].job);
    });
    share(jobs, r.capacity, used_sum);
    publish(h, r, jobs, used_sum, changed);
  }

  void share(std::vector<candidate>& jobs, rate left, rate used_sum) const {
    std::size_t to_visit = jobs.size();
    for (candidate& j : jobs) {
      rate const fair = left / to_visit--;
      bool const under = j.used <= part_of(j.promised, 95, 100);
      rate const kept = under ? j.used + (j.promised - j.used) / variant_.gap_part : j.promised;
      j.amount = std::min(kept, fair);
      left -= j.amount;
    }
    for (candidate& j : jobs) j.amount += part_of(left, j.used, used_sum);
  }

  /// Small changes are not made; the others are scaled if they would not fit beside the kept ones.
  static void publish(history& h, round const& r, std::vector<candidate> const& jobs, rate used_sum,
                      bool changed) {
    bool const slack = used_sum < part_of(r.capacity, 95, 100);
    auto const is_kept = [&](candidate const& j) {
      rate const old = h.jobs[r.claims[j.index].job].granted;
      rate const change = std::max(old, j.amount) - std::min(old, j.amount);
      return !changed &&
             (change < part_of(j.amount, 1, 100) || (slack && change < part_of(j.amount, 5, 100)));
    };
    rate kept = 0, fresh = 0;
    for (candidate const& j : jobs) {
      if (is_kept(j))
        kept += h.jobs[r.claims[j.index].job].granted;
      else
        fresh += j.amount;
    }
    bool const scale = slack && kept < r.capacity && kept + fresh > r.capacity;
    for (candidate const& j : jobs) {
      if (is_kept(j)) continue;
      h.jobs[r.claims[j.index].job].granted =
          scale ? part_of(j.amount, r.capacity - kept, fresh) : j.amount;
    }
  }

  variant variant_;
  std::vector<history> histories_;
  std::vector<basin> basins_;
};

}  // namespace

std::unique_ptr<allocator> make_psfa_2023() {
  return std::make_unique<psfa>(variant{5 * second_ns, 4, false});
}

std::unique_ptr<allocator> make_psfa_2026() {
  return std::make_unique<psfa>(variant{second_ns, 20, true});
}

}  // namespace sluice::policies
