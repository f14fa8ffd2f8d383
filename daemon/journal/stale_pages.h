// SPDX-License-Identifier: Apache-2.0
// Pages of a file that the kernel still has cached from before the disk refused some of them. ext4
// (of Linux 6.15, and of older versions maintained since) shows such a page as clean, and believes
// its blocks to be written ones; when it is written again the bytes get to the disk, but the extent
// stays an unwritten one: fsync returns 0, and after the next mount the blocks are zeros. So
// recovery drops them from the cache before it brings refused bytes home.
#pragma once

#include "journal/page_set.h"

namespace sluice::journal {

/// Its pages go to the disk, and are waited for: 0, or an errno. Of an earlier error it tells, and
/// does nothing else then.
int write_cached(int fd);

/// Before anything is written to it. Errors of earlier writes are not told here: what they were
/// about is written anew, or was not acknowledged. Pages that a program has mapped stay.
void forget_cached(int fd);

/// Of bytes (not pages) that were written and waited for: 0; ENODATA when some have blocks that
/// would read as zeros after the next mount; or with which errno that cannot be told. Other file
/// systems than ext4 look at their extents again when they write.
int why_unwritten(int fd, page_set const& bytes);

}  // namespace sluice::journal
