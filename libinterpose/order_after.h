// SPDX-License-Identifier: Apache-2.0
// Cluster epochs in the stage: where a job has a file `after` (abi/after_area.h), bodies of its own
// stand before libc and before those of order_calls.cc. A call that is about to make, open to be
// written, or give a name like `write` asks the node's daemon first, and fails with EIO unless all
// that the job wrote is durable. A job without that file runs the instructions it always ran.
// Must stay true: such a call goes on only by an answer. The gate stands before the call, not at
// the fsync: what is written may be durable at any moment from then on, without one.
#pragma once

namespace sluice::after {

/// Maps the file `after` in the directory of `segment_path`, whose last part is replaced. False:
/// there is none, or it is not one of ours.
bool begin(char* segment_path);

/// Puts the bodies of order_after.cc in the place of what is there.
void stand_between();

}  // namespace sluice::after
