// SPDX-License-Identifier: Apache-2.0
// The list of all measurements: pure, the same for the same options, so that an interrupted
// calibration knows what it still has to do. A step is a load on the file system; it is measured in
// several rounds, one after the other, because what changes slowly must show as a spread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/calibrate/work.h"

namespace sluice::calibrate {

enum class step_kind : std::uint8_t {
  point,  // of a curve
  side,   // a kind of request beside the curves
  op,     // of metadata
  grid,   // readers and writers at once
  pair    // two tenants, each held to half of the floor
};

struct step {
  step_kind kind = step_kind::point;
  std::string id;   // unique, lasts: `read/aligned/4096`
  std::string say;  // for people
  std::vector<work> works;
  double readers = 0;     // grid: their part of the threads
  std::string side_kind;  // side: a name of policy::side_kinds()
  unsigned rounds = 1;
};

/// The abilities of the file system, and how thorough the user wants it.
struct abilities {
  bool direct = true;            // O_DIRECT of whole pages
  bool direct_sectors = true;    // and of 512 bytes, anywhere
  std::uint64_t file_bytes = 0;  // of the file that is read and written
  bool is_short = false;
};

/// A limited disk gives what it has in slices of a tenth of a second: a look takes several of them.
struct timing {
  std::int64_t ramp_ns = 0, probe_ns = 0, window_ns = 0;
  std::int64_t longest_ns = 0;  // a window that has seen too little is prolonged up to this
  unsigned least_requests = 0;  // of each thread in a window: large ones end all together
  unsigned first_threads = 0, most_threads = 0;  // of all processes together
  bool climbs_once = false;  // more threads are tried with the first size of a curve alone
};

std::vector<step> plan_of(abilities const& a);
/// Those of them whose id begins with one of the words; all when there are none.
std::vector<step> only(std::vector<step> plan, std::vector<std::string> const& words);
timing timing_of(abilities const& a);
/// Operations on names wait for no slices: shorter looks.
timing timing_of(step const& s, timing const& t);

/// How long a round of it takes, about, at full load.
double expected_s(step const& s, unsigned round, timing const& t);

/// Three points that tell whether a file system has changed.
std::vector<step> drift_plan(abilities const& a);

}  // namespace sluice::calibrate
