// SPDX-License-Identifier: Apache-2.0
// Small writes that wait in a ring outside the program: see strict.cc.
#pragma once

#include "small/held.h"

namespace sluice::gather {

/// With the lock, of a slot whose writes wait in a ring.
flushed flush_ring(slot& s, int fd, amount how);
bool has_in_ring(slot const& s);
/// Before a call that may be about any file. It waits for the keeper; but not for one who has
/// brought nothing to the file since somebody waited five seconds for that: the file system takes
/// nothing, and the call may be about another one.
void flush_soon(slot& s, int fd);
/// False: it is not held any more, and the write is to be made.
bool take_into_ring(slot& s, int fd, void const* from, std::size_t size);
/// A write of `n` bytes was made in a strict target, on a descriptor that is not held.
void note_strict(int fd, ssize_t n);

}  // namespace sluice::gather
