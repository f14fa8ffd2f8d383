// SPDX-License-Identifier: Apache-2.0
// Whether the journal pays. Where processors are the limit, or the journal cannot help a program's
// syncs, programs may get more done with the kernel's own fsync. So that is tried, and measured. An
// experiment compares parts with the journal and parts without by how many syncs return per second.
// Such a figure is rough, so the best of three counts. But a part without the journal that is
// clearly worse ends the experiment, at once if it is half as much. Pure: times and counts are
// arguments.
#pragma once

#include <cstdint>

namespace sluice::journal {

struct experiment {
  /// Each part settles for so long and is measured for as long, longer where little is synced, and
  /// half as long where that says enough.
  /// 0: no experiments, the journal is always used.
  std::uint64_t window_ns = 250'000'000;
  std::uint64_t syncs_min = 100;            // in a window; fewer say little
  std::uint64_t first_ns = 1'000'000'000;   // of work, before the first
  std::uint64_t again_ns = 10'000'000'000;  // to the next; longer each time that the answer stays
  std::uint64_t again_max_ns = 40'000'000'000;
};

class log_worth {
 public:
  explicit log_worth(experiment const& how) : how_(how) {}

  /// The journal is to stand aside now.
  bool wants_aside() const { return part_ == no_part ? is_better_ : is_without(part_); }
  /// `syncs`: how many have returned so far. `is_so`: what is wanted is the case by now.
  void look(std::uint64_t now_ns, std::uint64_t syncs, bool is_so);

 private:
  static constexpr unsigned parts = 6, no_part = parts;
  static bool is_without(unsigned part) { return part % 2 != 0; }

  void begin(std::uint64_t now_ns, std::uint64_t syncs);
  void wait_for_work(std::uint64_t now_ns, std::uint64_t count);
  void end_part(std::uint64_t now_ns, double per_second);
  void decide(std::uint64_t now_ns, bool is_better);

  experiment how_;
  unsigned part_ = no_part;
  bool is_better_ = false;  // without, the last time
  bool is_settling_ = false;
  std::uint64_t begin_ns_ = 0, begin_syncs_ = 0;  // of a measurement, or of the settling
  std::uint64_t due_ns_ = 0, wait_ns_ = 0;
  double per_second_[parts] = {};
  unsigned better_ = 0, no_better_ = 0;  // so often, without
};

}  // namespace sluice::journal
