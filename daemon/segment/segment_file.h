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

/// A job that is being made, in a folder that nobody else gets into. What it took of RUN it keeps
/// between its tries: who fills RUN again and again leaves less than a job each time, and would
/// keep others' jobs out for good.
class begun_job {
 public:
  /// `whose`: there is one for each name.
  explicit begun_job(std::string const& run_dir, std::string const& whose = {});
  begun_job(begun_job const&) = delete;
  begun_job& operator=(begun_job const&) = delete;
  ~begun_job() { give_up(); }

  /// Takes what room is missing, and makes the job, complete in one rename. False when one of that
  /// name is there. Throws: what it has it keeps after no_room, and gives back after other errors.
  /// Another try may be for another job.
  bool finish(new_job const& made, policy::compiled const& limits);

 private:
  void take_all(new_job const& made, policy::compiled const& limits);
  void give_up();

  std::string run_dir_, fresh_;
  uid_t uid_ = 0;  // of the last try
};

/// One try. False when it is there already. Throws, no_room among others.
bool create(std::string const& run_dir, new_job const& made, policy::compiled const& limits);

/// Makes RUN/jobs/JOB with its segment and the link to `library`. False when a job of that name is
/// there.
bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits);

/// Makes the area of abi/path_area.h beside a segment, of that user, unless it is there: for
/// programs that note the first `parts` parts of the directories they use, when the segment says
/// that it is there. Waits for nobody: no file of his is opened or changed.
void add_path_area(std::string const& segment_path, uid_t uid, gid_t gid, unsigned parts);

}  // namespace sluice::segment
