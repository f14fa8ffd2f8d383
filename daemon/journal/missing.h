// SPDX-License-Identifier: Apache-2.0
// Opening by handle says ESTALE whatever went wrong: the kernel does not say that an inode, or a
// directory above, could not be read. If we took that for a removed file, we would drop its
// records. So the inode is looked up in another way: xfs is asked, and on ext4 it is read
// from the device. If that cannot be done, the kernel is believed.
#pragma once

#include "journal/record.h"

namespace sluice::journal {

struct mounted_at {
  int fd;                            // of its root
  std::string source, device, type;  // as mountinfo says it
};

/// `id` could not be opened, ESTALE: 0 when there is no such file, or an errno when it is there, or
/// cannot be read.
int why_missing(mounted_at const& fs, file_id const& id);

}  // namespace sluice::journal
