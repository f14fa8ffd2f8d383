// SPDX-License-Identifier: Apache-2.0
// Makes the folder of a job: its segment, and the areas beside it.
// What stays true: a directory under RUN/jobs appears complete, in one rename.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "abi/segment.h"
#include "base/error.h"
#include "base/foreign.h"
#include "base/process_mark.h"
#include "policy/compile.h"

namespace sluice::segment {

/// A job that is to be made.
struct new_job {
  std::string folder;  // below RUN/jobs; our users' jobs are called JOB, others' UID@JOB
  std::string job;
  std::string library;
  uid_t uid;  // whose the segment is; the folder stays ours
  gid_t gid;
  process_mark creator;     // as long as it is alive, so is the job
  std::string record = {};  // becomes RUN/jobs/FOLDER/job.json; empty: none
};

/// There is no room for one more job now: RUN's memory is full, or there are as many as may be.
class no_room : public error {
 public:
  explicit no_room(std::string const& sentence, int status = exit_sluice)
      : error(status, sentence) {}
};

/// Makes the folder, complete in one rename. False when it is there already. Throws, no_room among
/// others.
bool create(std::string const& run_dir, new_job const& made, policy::compiled const& limits);

/// Makes RUN/jobs/JOB with its segment and the link to `library`. False when a job of that name is
/// there.
bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits);

/// Makes the area of abi/path_area.h beside the segment `s`, of that user, unless it is there: from
/// now on programs that start in the job note the first `parts` parts of the directories they use.
/// Waits for nobody: no file of his is opened or changed.
void add_path_area(foreign<abi::segment>& s, std::string const& segment_path, uid_t uid, gid_t gid,
                   unsigned parts);

}  // namespace sluice::segment
