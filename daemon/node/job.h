// SPDX-License-Identifier: Apache-2.0
// One job on this node: its segment, and the daemon's own knowledge of it. State that must survive
// the daemon lies in RUN/jobs/FOLDER/job.json, which only the daemon can write. The job can
// scribble over the segment, so nothing that matters relies on it.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "base/process_mark.h"
#include "epochs/node_epochs.h"
#include "node/call_speeds.h"
#include "node/call_times.h"
#include "node/demand_meter.h"
#include "node/share_out.h"
#include "segment/beside.h"
#include "segment/cut_back.h"
#include "segment/held_areas.h"
#include "segment/job_life.h"
#include "segment/job_memory.h"
#include "segment/run_dir.h"
#include "segment/sums.h"

namespace sluice::node {

/// A channel with a fixed curve: one of the policy's `channels`, or the user's own --limit.
struct fixed_channel {
  std::string name;
  unit_kind unit = unit_kind::ops;
  std::uint64_t rate_q40 = 0;
  bool is_own = false;  // the user's: he may raise it too
};

/// What makes a job the scheduler's: it was announced in RUN/scheduler, and lives until that is
/// gone.
struct scheduler_terms {
  bool is_held = false;     // announced now
  bool is_metered = false;  // it has a class: its processes are to load the library
  bool is_open = false;     // it named no class: the first process that names one chooses
  bool had_batch = false;   // its batch script ran here
  std::string account, label;
  unsigned nodes = 1;
  std::int64_t since_unix_s = 0;
  std::string note;                 // what the user should know
  std::vector<process_mark> steps;  // root's processes, all below which is the job
  double since_boot_s = 0;          // `since_unix_s` on CLOCK_BOOTTIME, of the boot of this id
  std::string boot = {};            // empty: an earlier version kept none
};

/// What is kept in job.json.
struct job_record {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  std::string qos_class;
  bool monitor = false;
  std::vector<std::string> limits;  // as given, sorted
  std::vector<fixed_channel> fixed;
  std::vector<std::string> granted;   // names of the channels the daemon writes
  std::vector<std::string> left_out;  // targets that this node did not have
  std::vector<process_mark> joiners;  // who asked to join and may not have attached yet
  std::optional<scheduler_terms> scheduler;
  std::vector<epochs::after_rule> after = {};  // by rule of its area
  segment::made_sizes sizes = {};              // of its files
};
std::string to_text(job_record const& r);
/// Throws sluice_error when it is not one of ours.
job_record read_record(std::string const& text);

/// Job and supply: what is measured and granted.
struct stream {
  unsigned channel = 0;
  unsigned supply = 0;  // number of site_state
  unit_kind unit = unit_kind::ops;
  demand_meter measured;
  figures last;
  phases in_force;
  rate granted = 0;           // by the parent
  std::optional<rate> limit;  // of the job on all nodes, as the parent says; none: it says nothing
  rate share = 0;             // what it may use
  bool is_held = true;        // to its share: the policy is enforced, and the job not only watched
  tally counted;
  amounts told;                   // of what was counted, to the history
  std::uint64_t waits = 0;        // waits_so_far(), when there was time to look
  std::optional<rate> need = {};  // reserved for requests that its class promises
  /// Served beyond its share, where nothing holds it to that.
  rate beyond() const { return is_held || last.served < share ? 0 : last.served - share; }
};

/// A process of the job that nobody meters, and why.
struct escaped {
  std::uint32_t pid = 0;
  std::string name;
  std::string why;
};

/// A fixed channel in its place.
struct fixed_place {
  unsigned channel = 0;
  fixed_channel of;
  std::uint64_t in_force_q40 = ~std::uint64_t{0};  // unknown: written once
};

/// So many looks may find a lease on a file of a job. Then the job goes.
inline constexpr unsigned most_leased_looks = 3;

/// What of abi::hint and abi::gather is counted in the metrics.
using told_hints = std::array<std::uint64_t, abi::hint_counts>;
using told_gathered = std::array<std::uint64_t, abi::gather_counts>;
using told_buffered = std::array<std::uint64_t, abi::buffer_counts>;

struct job {
  std::string folder;
  job_record record;
  core::job_id key;  // wire::job_key
  uid_t owner = 0;   // see owner_by
  segment::job_memory map;
  segment::held_areas areas;
  unsigned leased_looks = 0;  // one after the other, that found a lease on one of its files
  std::vector<stream> streams;
  std::vector<segment::op_sums> told_ops;  // to the history; empty: it ran before this daemon did
  std::vector<segment::op_sums> read_ops;  // to be told next; empty: not read since
  told_times times;                        // to the metrics
  told_hints hints = {};                   // the same
  told_gathered gathered = {};             // the same
  told_buffered buffered = {};             // the same
  told_speeds speeds;                      // to what steers capacities
  std::vector<fixed_place> fixed;
  std::uint32_t processes = 0;
  std::uint32_t foreign = 0;        // of these, in other pid namespaces
  std::uint32_t foreign_found = 0;  // of these, looked at from outside
  segment::job_life life;
  std::int64_t counted_ns = 0;  // when it was known last whether it is used
  std::vector<escaped> escapes;
  bool wants_journal = false;  // a target of it is durable or ordered
  bool is_announced = false;   // the parent has been told its name
  std::int64_t ending_ns = 0;  // since when its last figures are waited for

  job(std::string folder_, job_record record_, segment::job_memory map_);
  /// To be read: whoever writes there, but for its programs, writes by `map`.
  sluice::foreign<abi::segment> const& memory() const { return *map; }
  segment::job_files files(std::string const& run_dir) const {
    return {segment::segment_path(run_dir, folder), record.uid, map.far()};
  }
  /// Its figures are those of the last look at it.
  bool is_seen_last() const { return map.is_current(); }
  /// Its owner keeps the daemon from its files by leases.
  bool is_leased() const { return leased_looks >= most_leased_looks; }
  /// It is to go: its file was cut short, and nothing in it means anything any more, or it is
  /// leased.
  bool is_broken() const { return map.is_broken() || is_leased(); }
  /// One look at a channel of it.
  sample look_at(unsigned channel, look_depth depth, std::int64_t now_ns) const {
    return record.monitor ? look_watched(memory(), channel, now_ns)
                          : look(memory(), channel, depth, now_ns);
  }
  /// What people are told: a watched job may want more, but nothing of it waits.
  figures told_of(stream const& s) const {
    figures f = s.last;
    if (record.monitor) f.waiting = f.waiters = f.blocked_ppm = 0;
    return f;
  }
  /// What holds the stream back: the curve of a watched job does not.
  rate paid_to(stream const& s) const {
    return record.monitor ? unlimited(s.unit) : s.in_force.now;
  }
};

}  // namespace sluice::node
