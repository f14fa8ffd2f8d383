// SPDX-License-Identifier: Apache-2.0
// Names in a directory mean what they did a moment ago only where no stranger may rename. What
// removes files by name asks here first.
#pragma once

#include <sys/types.h>

#include <string>

namespace sluice {

/// Who, besides this user and root, may rename and remove what this user has in the directory, in
/// words: "everybody", "its group". Empty: nobody. A group that has only this user in it is nobody.
/// `directory` may be open for its path alone (O_PATH).
std::string who_may_rename(int directory);

/// In a user namespace, files of users that it does not know seem to be nobody's, root's too. So
/// the owner of a directory is root, where it says so, or where it is nobody's and one of those
/// that are root's on every machine, like /tmp. `path` has no links.
bool is_roots(uid_t owner, std::string const& path);
/// What owners seem to be that a user namespace does not know.
uid_t overflow_uid();

}  // namespace sluice
