// SPDX-License-Identifier: Apache-2.0
#include "journal/worth.h"

#include <algorithm>

namespace sluice::journal {

namespace {

constexpr std::uint64_t patience_windows = 8;  // for a part: then things have changed
constexpr double clearly = 1.05, clearly_less = 0.9;
constexpr unsigned wins = 2;
constexpr double early_syncs = 20;  // expected in half a window; half as many say enough

}  // namespace

void log_worth::begin(std::uint64_t now_ns, std::uint64_t syncs) {
  begin_ns_ = now_ns;
  begin_syncs_ = syncs;
}

void log_worth::look(std::uint64_t now_ns, std::uint64_t syncs, bool is_so) {
  if (how_.window_ns == 0) return;
  if (begin_ns_ == 0) begin(now_ns, syncs);
  std::uint64_t const took_ns = now_ns - begin_ns_;
  // The counts of a job that ended are gone.
  std::uint64_t const count = syncs - std::min(syncs, begin_syncs_);
  if (part_ == no_part) {
    if (took_ns < how_.window_ns) return;
    wait_for_work(now_ns, count);
    return begin(now_ns, syncs);
  }
  if (took_ns > patience_windows * how_.window_ns) {
    decide(now_ns, false);
    return begin(now_ns, syncs);
  }
  if (is_settling_) {
    if (!is_so || took_ns < how_.window_ns) return;
    is_settling_ = false;
    return begin(now_ns, syncs);
  }
  bool const is_whole = took_ns >= how_.window_ns && count >= how_.syncs_min;
  double const per_second =
      static_cast<double>(count) * 1e9 / static_cast<double>(std::max<std::uint64_t>(took_ns, 1));
  bool const is_half = is_without(part_) && took_ns >= how_.window_ns / 2;
  double const with = is_half ? per_second_[part_ - 1] : 0;
  bool const is_hopeless =
      is_half && with * static_cast<double>(took_ns) / 1e9 >= early_syncs && per_second < with / 2;
  if (is_hopeless)
    decide(now_ns, false);
  else if (is_whole)
    end_part(now_ns, per_second);
  else
    return;
  begin(now_ns, syncs);
}

/// Between experiments. The first one waits until programs are under way.
void log_worth::wait_for_work(std::uint64_t now_ns, std::uint64_t count) {
  if (count < how_.syncs_min) {
    is_better_ = false;
    due_ns_ = 0;
    wait_ns_ = 0;
  } else if (due_ns_ == 0) {
    due_ns_ = now_ns + how_.first_ns;
  } else if (now_ns >= due_ns_) {
    part_ = better_ = no_better_ = 0;
    is_settling_ = true;
  }
}

void log_worth::end_part(std::uint64_t now_ns, double per_second) {
  per_second_[part_] = per_second;
  is_settling_ = true;
  bool const is_pair = is_without(part_);
  double const with = is_pair ? per_second_[part_ - 1] : 0;
  ++part_;
  if (!is_pair) return;
  ++(per_second > with * clearly ? better_ : no_better_);
  bool const is_worse = per_second < with * clearly_less;
  if (is_worse || better_ == wins || no_better_ == wins)
    decide(now_ns, !is_worse && better_ == wins);
}

/// What stays as it was is not asked so often.
void log_worth::decide(std::uint64_t now_ns, bool is_better) {
  bool const is_news = is_better != is_better_ || wait_ns_ == 0;
  wait_ns_ = is_news ? how_.again_ns : std::min(wait_ns_ * 2, how_.again_max_ns);
  due_ns_ = now_ns + wait_ns_;
  is_better_ = is_better;
  part_ = no_part;
}

}  // namespace sluice::journal
