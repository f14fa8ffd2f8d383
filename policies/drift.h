// SPDX-License-Identifier: Apache-2.0
// Whether a file system still gives what its costs were measured to be. Pure: time is an argument.
//
// Little's law tells how many calls are at the device: the time of all calls by the time that
// passed. When these are as many as filled it at the calibration, it must give the floor; however
// many they are, it cannot give more than its most. Nothing is said of a device that nobody keeps
// busy.
#pragma once

#include <cstdint>

#include "policies/allocate.h"

namespace sluice::policies {

/// What was measured, of one supply of VOPs.
struct measured_supply {
  rate floor = 0, most = 0;
  double threads = 0;  // that filled the device
};

enum class drift_sign : std::uint8_t {
  unknown,  // it was not busy for long enough
  fits,
  less,  // than the floor, though it is busy: it became slower, or others use it
  more,  // than the most: it became faster, or reads come from a cache
};

class drift {
 public:
  void use(measured_supply const& costs) { costs_ = costs; }
  /// `served`: mean since the last look; `took_ns`: of all calls that ended since then. Any number
  /// of times a second.
  void look(rate served, std::uint64_t took_ns, std::int64_t now_ns);

  drift_sign sign() const { return sign_; }
  /// VOP/s of the last busy seconds; 0: not known.
  rate given() const;
  measured_supply const& costs() const { return costs_; }

 private:
  void decide(double span_s);

  measured_supply costs_;
  std::int64_t looked_ns_ = 0;
  double span_s_ = 0, served_ = 0, took_s_ = 0;  // since the last decision; served in milli-tokens
  double busy_s_ = 0, busy_served_ = 0;          // lately, forgotten bit by bit
  drift_sign sign_ = drift_sign::unknown;
};

/// `unknown`, `fits`, `less`, `more`.
char const* name_of(drift_sign s);

}  // namespace sluice::policies
