// SPDX-License-Identifier: Apache-2.0
// When recovery itself changed files: a journal has it in its superblock, one span for each of the
// last attempts. A file that was changed after the crash and in none of them was changed by
// somebody else. An attempt renews its span while it writes, for one that is killed cannot end it.
// What stays true: what lies between two attempts is in no span. Of older attempts than there is
// room for nothing is known, so what they wrote counts as somebody else's and is kept aside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace sluice::journal {

/// Wall clock, the latest attempt first. Zero: none.
struct own_times {
  static constexpr std::uint64_t renewed_ns = 10'000'000'000;

  struct span {
    std::uint64_t from_ns, until_ns;
  };
  span of[8];

  bool contain(std::uint64_t ns) const {
    return std::any_of(std::begin(of), std::end(of),
                       [&](span const& s) { return s.from_ns <= ns && ns <= s.until_ns; });
  }
  /// Nobody works any more who had announced to.
  void end(std::uint64_t now_ns) {
    for (span& s : of) s.until_ns = std::min(s.until_ns, now_ns);
  }
  /// The latest ends, and has lived until now: one call may have lasted longer than was announced.
  void close(std::uint64_t now_ns) { of[0].until_ns = now_ns; }
  void begin(std::uint64_t now_ns) {
    std::copy_backward(std::begin(of), std::end(of) - 1, std::end(of));
    of[0] = {now_ns, now_ns + renewed_ns};
  }
  bool want_renewal(std::uint64_t now_ns) const { return now_ns + renewed_ns / 2 > of[0].until_ns; }
  void renew(std::uint64_t now_ns) { of[0].until_ns = now_ns + renewed_ns; }
};

}  // namespace sluice::journal
