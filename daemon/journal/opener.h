// SPDX-License-Identifier: Apache-2.0
// A user's journal is recovered with that user's rights, so whatever he wrote into it, nothing is
// done that he could not do himself. What needs more is asked of a small process of root's, the
// opener: it opens by handle, syncs file systems, and keeps the mark of a recovery.
// What stays true: the opener reads nothing of the journal, and opens regular files of that user
// alone. A directory it opens by its name, with that user's rights. It tells no names, and says the
// same of all that is there and is not his. The user cannot look into the process that has his
// rights, nor ask the opener himself.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "journal/hands.h"
#include "journal/home.h"

namespace sluice::journal {

/// When root's process is to recover a journal of another user: from now on it is that user, for
/// good, and asks what is returned. Null where nothing is to be changed. Call it while there is one
/// thread. Throws sluice::error.
std::unique_ptr<home> become_owner(std::string const& log, lock_patience const& patience = {});

/// The same for that user, whoever owns what. `gid`: the first of his groups, where it is one of
/// his; the kernel shows descriptors of a process to none with another.
std::unique_ptr<home> become_user(uid_t uid, std::optional<gid_t> gid = {},
                                  lock_patience const& patience = {});

}  // namespace sluice::journal
