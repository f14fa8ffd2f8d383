// SPDX-License-Identifier: Apache-2.0
// The verbs of sluice-slurm. A hook never fails a job: errors are printed on standard error.
#pragma once

#include <string>
#include <vector>

namespace sluice::slurm {

using words = std::vector<std::string>;

/// sluice submit [--class C] [--limit SPEC] [SBATCH OPTIONS] SCRIPT …: becomes sbatch.
int submit(words const& arguments);

/// sluice hook prolog|epilog|task-prolog.
int hook(words const& arguments);

}  // namespace sluice::slurm
