// SPDX-License-Identifier: Apache-2.0
#include "cli/job.h"

#include <fmt/format.h>

#include <filesystem>

#include "policy/error.h"
#include "policy/suggest.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::cli {

open_job find_job(global_options const& global, std::string const& name) {
  segment::check_job_name(name);
  std::string const run_dir = segment::run_dir(global.run_dir);
  std::string const path = segment::segment_path(run_dir, name);
  std::error_code failed;
  if (!std::filesystem::exists(path, failed))
    throw usage_error(fmt::format("no job {} in {}{}", name, run_dir,
                                  policy::did_you_mean(name, segment::list_jobs(run_dir))));
  return {run_dir, name, segment::mapping::open(path)};
}

}  // namespace sluice::cli
