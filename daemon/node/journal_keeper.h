// SPDX-License-Identifier: Apache-2.0
// The process that keeps the journals of a node's users: it starts `sluice-order serve` for each
// user that sluiced names, starts it again when it dies, after longer and longer pauses, and ends
// it. It is forked before sluiced gives up its privileges, because only root can take the rights of
// a user, and sluiced listens to users and the network.
// What stays true: it listens to sluiced alone, in words of one fixed size; it never waits for
// sluiced, nor for what a user does: it touches nothing in his directory; when sluiced is gone, for
// whatever reason, it has all journals brought home and ends.
#pragma once

#include <sys/types.h>

#include "base/descriptor.h"
#include "node/journal_words.h"

namespace sluice::node {

struct journal_child {
  pid_t pid = 0;
  descriptor socket;
};

/// Forks the keeper. Call it while there is one thread. Throws.
journal_child keep_journals(journal_settings const& settings);

}  // namespace sluice::node
