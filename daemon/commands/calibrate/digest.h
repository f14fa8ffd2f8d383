// SPDX-License-Identifier: Apache-2.0
// A cost file as people look at it: what is charged for each size and op, whether that was
// measured, and what there is to say about it. Pure.
#pragma once

#include <string>
#include <vector>

#include "policy/cost_file.h"

namespace sluice::calibrate {

/// A number of a table and how it came about.
struct charge {
  std::string label;  // `4 KiB`, `open`
  std::uint64_t bytes = 0;
  double cost = 0;  // VOP, as the stage charges it
  bool is_measured = false;
  policy::measured how;
  /// An operation so short that no device was asked: what it shows is the processor's speed, which
  /// is another one at the next calibration.
  bool is_of_processor = false;
  /// `~` unstable, `^` of the processor; empty: neither.
  char const* mark() const { return how.is_unstable ? "~" : is_of_processor ? "^" : ""; }
};

/// What mark() and brackets mean.
inline constexpr char legend[] =
    "~ unstable   ^ the processor's speed   ( ) not measured: between two points, or as its "
    "nearest kin";

struct curve_digest {
  char const* name;             // `read`, `write, unaligned`
  std::vector<charge> charges;  // one per size
};

struct digest {
  std::string file;
  policy::cost_file costs;
  std::vector<curve_digest> curves;  // read, write, both unaligned too
  std::vector<charge> ops;           // all that the table has, `create` too
  std::vector<std::string> said;     // sentences
};

digest digest_of(policy::cost_file const& c, std::string const& file);

/// `0.0123`, `1.04`, `18.3`, `240`.
std::string cost_words(double cost);

}  // namespace sluice::calibrate
