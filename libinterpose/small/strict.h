// SPDX-License-Identifier: Apache-2.0
// Small writes that wait in a ring outside the program: see strict.cc.
#pragma once

#include "small/held.h"

namespace sluice::gather {

/// With the lock, of a slot whose writes wait in a ring. Until then they are waited for, where it
/// goes on.
flushed flush_ring(slot& s, int fd, amount how, std::int64_t until_ns = for_ever_ns);
bool has_in_ring(slot const& s);
/// All of it is written; false: it was not by then. Nobody waits again for a keeper who has brought
/// nothing to the file since somebody waited in vain: the file system takes nothing.
bool flush_until(slot& s, int fd, std::int64_t until_ns);
/// False: it is not held any more, and the write is to be made.
bool take_into_ring(slot& s, int fd, void const* from, std::size_t size);
/// A write of `n` bytes was made in a strict target, on a descriptor that is not held.
void note_strict(int fd, ssize_t n);

}  // namespace sluice::gather
