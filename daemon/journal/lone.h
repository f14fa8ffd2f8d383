// SPDX-License-Identifier: Apache-2.0
// The cost of a sync that nobody shares: at home, and in the journal. Both take one flush, but the
// two may lie on different disks, and the way to the journal leads through the daemon. Both are
// measured repeatedly. The journal is chosen only when it is clearly quicker, because it writes the
// bytes twice. Pure: times are arguments.
#pragma once

#include <cstdint>

namespace sluice::journal {

class lone_costs {
 public:
  static constexpr std::uint64_t lasts_ns = 20'000'000'000;  // then it is measured again

  void home_took(std::uint64_t now_ns, std::uint64_t ns) { home_.note(now_ns, ns); }
  void log_took(std::uint64_t now_ns, std::uint64_t ns) { log_.note(now_ns, ns); }
  /// Nobody knows what the journal takes by now: worth a record of nothing.
  bool wants_log(std::uint64_t now_ns) const { return !log_.is_known(now_ns); }
  bool is_log_quicker(std::uint64_t now_ns) const;
  /// What a look at a file takes would be a good part of what the journal saves.
  bool is_look_dear(std::uint64_t now_ns, std::uint64_t look_ns) const;

 private:
  /// The least of the last few: what is above it was somebody else's.
  class cost {
   public:
    void note(std::uint64_t now_ns, std::uint64_t ns);
    bool is_known(std::uint64_t now_ns) const { return count_ != 0 && now_ns - at_ns_ < lasts_ns; }
    std::uint64_t ns() const;

   private:
    static constexpr unsigned kept = 4;
    std::uint64_t last_[kept] = {};
    unsigned count_ = 0;
    std::uint64_t at_ns_ = 0;
  };
  cost home_, log_;
};

}  // namespace sluice::journal
