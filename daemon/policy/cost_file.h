// SPDX-License-Identifier: Apache-2.0
// The costs of requests on a file system, measured by `sluice calibrate` or written by hand: a JSON
// file. Problem: a cost that is wrong by a factor gives one job what another was promised.
// Idea: nothing is guessed in silence. What is absurd is refused with file, line and column; what
// is not there costs what its nearest kin costs (kin.def); the file says of which mount it is true.
// What stays true: what was read has a max_vops, a floor that is no higher, and curves whose sizes
// grow; to_table() of it is always a table that core::validate() lets through.
// The format is described in daemon/commands/calibrate/README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost_table.h"
#include "policy/mount_table.h"

namespace sluice::policy {

inline constexpr unsigned cost_file_version = 1;
inline constexpr double least_cost = 0.001, most_cost = 1e6;  // VOP

/// Where and when it was measured. All empty in a file that was written by hand.
struct provenance {
  std::string path;      // that was given
  std::string device;    // `254:0`
  std::string fs;        // type of the file system
  std::string source;    // of the mount
  std::string options;   // of the mount
  std::string identity;  // hexadecimal, of the file system; empty: it has none that lasts
  std::string kernel, host;
  std::string time;  // UTC, 2026-11-24T22:10:00Z
  std::string io;    // `direct` or `buffered`
  double load = 0;   // load average when it began

  bool is_known() const { return !device.empty(); }
};

/// The measurement behind a cost. All 0: written by hand.
struct measured {
  double per_s = 0;          // requests per second, the median of the rounds
  double spread = 0;         // between the rounds, as a part of the median
  bool is_unstable = false;  // the spread is too large to trust the cost
  double p50_us = 0, p99_us = 0;
  unsigned threads = 0;  // in all processes
};

struct cost_point {
  std::uint64_t bytes = 0;  // a size of core::cost_point_bytes()
  double cost = 0;          // VOP of one request
  measured how;
};

/// Growing sizes; empty: costs what its kin costs, else two points or more.
using cost_curve = std::vector<cost_point>;

struct op_cost {
  std::string op;  // of ops.def, none that moves bytes; or `create`
  double cost = 0;
  measured how;
};

/// A kind of request beside the curves, for people: `sequential_read`, `append` …
struct side_cost {
  std::string kind;
  std::uint64_t bytes = 0;
  double cost = 0;
  measured how;
};

/// The sum that the device gave when readers and writers of two sizes met.
struct interference {
  double readers = 0;  // their part of the threads, 0 to 1
  std::uint64_t read_bytes = 0, write_bytes = 0;
  double vops = 0;  // VOP/s of both
};

/// Two tenants who were each held to half of the floor.
struct verified_pair {
  std::string kind;  // rr, ww, rw
  std::array<std::uint64_t, 2> bytes = {};
  std::array<double, 2> ratio = {};  // of what each got to its half
  double mmr = 0;                    // the smaller ratio by the larger
};

struct cost_file {
  provenance from;
  double max_vops = 0;            // VOP/s: the rate of small random requests
  double provisionable_vops = 0;  // VOP/s that may be promised, whatever meets
  bool by_device = false;         // reads and writes cost what the device does, not what they move
  cost_curve read[2], write[2];   // [0] unaligned, [1] aligned
  std::vector<op_cost> ops;
  std::vector<side_cost> beside;
  std::vector<interference> grid;
  std::vector<verified_pair> pairs;
};

/// `name` is what messages call the text. Throws a usage error `name:line:column: …`.
cost_file parse_cost_file(std::string_view text, std::string const& name);
/// The same of a file, which is named too when it cannot be read.
cost_file read_cost_file(std::string const& path);

/// As read_cost_file() reads it; one row per point.
std::string cost_file_text(cost_file const& c);

/// The table that the stage charges by. A cost that is not in the file is that of the nearest kin.
core::cost_table to_table(cost_file const& c);

/// What `charge` may be: by the size of requests, or by what the device does for them.
std::vector<std::string> const& charge_names();

/// The kinds of requests that `beside` may have.
std::vector<std::string> const& side_kinds();

/// Why the file says nothing of the mount `m`, in which `where` lies: a part of a sentence. Empty:
/// it belongs there, or does not say where it was measured.
std::string why_other_mount(provenance const& from, mount const& m, place const& where);

/// The words of a file that is measured at `where`: path, device, type, source, options, identity.
provenance provenance_of(mount const& m, place const& where);

}  // namespace sluice::policy
