// SPDX-License-Identifier: Apache-2.0
// A segment as the command sees it: made, mapped and checked, its counters summed.
// What stays true: a directory under RUN/jobs appears complete, in one rename, and nothing read
// from a segment is trusted before it was checked: its head, and a copy of its ruleset.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/segment.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign.h"
#include "base/guard.h"
#include "policy/compile.h"

namespace sluice::segment {

/// A mapped segment. Moves, does not copy.
class mapping {
 public:
  /// Throws when there is none or it is not one of ours.
  static mapping open(std::string const& path);
  /// The same for a file that must belong to `owner`: the node daemon opens those of its users.
  static mapping open(std::string const& path, uid_t owner);
  ~mapping();
  mapping(mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), guard_(std::move(other.guard_)) {}
  mapping(mapping const&) = delete;
  mapping& operator=(mapping const&) = delete;
  mapping& operator=(mapping&&) = delete;

  foreign<abi::segment>& operator*() const { return *at_; }
  foreign<abi::segment>* operator->() const { return at_; }

  /// Where the guard is installed: its file was cut short, nothing in it means anything any more.
  bool is_broken() const { return guard_->is_broken(); }

 private:
  explicit mapping(abi::segment* at)
      : at_(at), guard_(std::make_unique<guarded_memory>(at, sizeof(abi::segment))) {}
  abi::segment* at_;
  std::unique_ptr<guarded_memory> guard_;
};

/// A job that is to be made.
struct new_job {
  std::string folder;  // below RUN/jobs; our users' jobs are called JOB, others' UID@JOB
  std::string job;
  std::string library;
  uid_t uid;  // whose the segment is; the folder stays ours
  gid_t gid;
  std::uint32_t creator_pid;  // as long as it is alive, so is the job
  std::string record = {};    // becomes RUN/jobs/FOLDER/job.json; empty: none
};

/// RUN's memory has no room for the files of a job.
class no_room : public error {
 public:
  explicit no_room(std::string const& sentence) : error(exit_sluice, sentence) {}
};

/// Makes the folder, complete in one rename. False when it is there already. Throws, no_room among
/// others.
bool create(std::string const& run_dir, new_job const& made, policy::compiled const& limits);

/// Makes RUN/jobs/JOB with its segment and the link to `library`. False when a job of that name is
/// there.
bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits);

/// Makes the area of abi/path_area.h beside a segment, of that user, unless it is there: from now
/// on programs that start in the job note the first `parts` parts of the directories they use.
void add_path_area(std::string const& segment_path, uid_t uid, gid_t gid, unsigned parts);

struct call_sums {
  std::uint64_t calls = 0, errors = 0, bytes = 0, delayed = 0, waited_ns = 0;
};

struct channel_sums {
  std::uint64_t calls = 0, amount = 0, delayed = 0, waited_ns = 0;
};

struct sums {
  std::vector<call_sums> call;        // max_calls rows
  std::vector<channel_sums> channel;  // channel_count rows
};

/// Counters summed over all shards ever used.
sums sum(foreign<abi::segment> const& s);

/// One channel of it, which is much less to read.
channel_sums sum_channel(foreign<abi::segment> const& s, unsigned channel);

struct op_sums {
  std::uint64_t calls = 0, bytes = 0, took_ns = 0;
};

/// Calls and bytes by op, over all shards ever used, and the time in the calls: op_count rows.
std::vector<op_sums> sum_by_op(foreign<abi::segment> const& s);

/// The time in the calls themselves by op, all targets and threads added, by their sample; ns.
std::vector<std::uint64_t> took_by_op(foreign<abi::segment> const& s);

/// The name of a job, bounded even if scribbled over.
std::string job_name(foreign<abi::segment> const& s);

}  // namespace sluice::segment
