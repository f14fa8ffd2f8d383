// SPDX-License-Identifier: Apache-2.0
// Problem: reading a job takes as long as its user likes. He says how many shards it has, and may
// take their pages away again and again.
// Idea: owners of jobs have equal parts of a part of the loop's time. Who has used up his is not
// read for a while: what he did is told later, and nobody else's figures are older.
// What stays true: what was used beyond a part is a debt, and the next look waits until it is paid.
// What is asked for to give a job its rate does not depend on it: without time left it is
// estimated.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace sluice::node {

class loop_time {
 public:
  static constexpr std::int64_t of_all_per_s_ns = 250'000'000;
  static constexpr std::size_t few_owners = 10;  // fewer have no larger parts
  static constexpr std::int64_t most_saved_ns = 10'000'000;
  static constexpr std::int64_t most_debt_ns = 2'000'000'000;  // the machine may have stood still

  using clock = std::function<std::int64_t()>;  // monotonic, ns
  explicit loop_time(clock now_ns = steady_ns) : now_ns_(std::move(now_ns)) {}

  /// Others are forgotten when they have paid their debts: a job is soon ended and begun again.
  void set_owners(std::set<uid_t> const& all) {
    std::int64_t const at_ns = now_ns_();
    std::erase_if(parts_, [&](auto const& one) {
      return !all.contains(one.first) && left_of(one.first, at_ns) >= 0;
    });
    owners_ = all.size();
  }

  /// Or owes less than that.
  bool has_time(uid_t owner, std::int64_t debt_ns = 0) {
    return left_of(owner, now_ns_()) > -debt_ns;
  }

  /// Does `work` for a job of that owner, if he has time left.
  template <class Work>
  bool spend(uid_t owner, Work&& work) {
    if (!has_time(owner)) return false;
    spend_anyhow(owner, work);
    return true;
  }

  /// Whether he has time left or not: it is the last look.
  template <class Work>
  void spend_anyhow(uid_t owner, Work&& work) {
    std::int64_t const began_ns = now_ns_();
    work();
    charge(owner, now_ns_() - began_ns);
  }

  /// The same for each job, beginning with another one each time. `otherwise`: for a job of whoever
  /// has no time left.
  template <class Jobs, class Work, class Otherwise>
  void each(Jobs const& jobs, Work&& work, Otherwise&& otherwise) {
    std::size_t const count = jobs.size(), first = first_++;
    for (std::size_t i = 0; i < count; ++i) {
      auto& j = *jobs[(first + i) % count];
      if (!spend(j.owner, [&] { work(j); })) otherwise(j);
    }
  }
  template <class Jobs, class Work>
  void each(Jobs const& jobs, Work&& work) {
    each(jobs, work, [](auto&) {});
  }

  void charge(uid_t owner, std::int64_t took_ns) {
    std::int64_t& left_ns = parts_[owner].left_ns;
    left_ns = std::max(left_ns - took_ns, -most_debt_ns);
  }

 private:
  struct part {
    std::int64_t left_ns = most_saved_ns, at_ns = 0;
  };

  static std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  std::int64_t left_of(uid_t owner, std::int64_t at_ns) {
    part& p = parts_[owner];
    auto const parts = static_cast<std::int64_t>(std::max(owners_, few_owners));
    constexpr std::int64_t longest_ns = 100'000'000'000;  // between two looks
    std::int64_t const passed_ns =
        p.at_ns == 0 ? 0 : std::clamp<std::int64_t>(at_ns - p.at_ns, 0, longest_ns);
    std::int64_t const more_ns = passed_ns / 1000 * of_all_per_s_ns / parts / 1'000'000;
    if (more_ns != 0 || p.at_ns == 0) p.at_ns = at_ns;
    p.left_ns = std::min(most_saved_ns, p.left_ns + more_ns);
    return p.left_ns;
  }

  clock now_ns_;
  std::size_t owners_ = 0, first_ = 0;
  std::map<uid_t, part> parts_;
};

/// Of different use. Looks of each step do not keep anybody from being told.
struct loop_times {
  loop_time steps;    // who waits, and what background work does
  loop_time figures;  // what is told: metrics, history, results, answers
  loop_time waits;    // until memory has come that another process looks at

  void set_owners(std::set<uid_t> const& all) {
    for (loop_time* const each : {&steps, &figures, &waits}) each->set_owners(all);
  }
};

}  // namespace sluice::node
